"""The administrator's side: Access, runs, memories, scheduled work."""
