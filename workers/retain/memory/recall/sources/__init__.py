"""What recall asks D1 first: all of it in one round trip."""
