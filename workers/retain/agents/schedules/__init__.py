"""Schedules as the object and D1 keep them: their rows, what D1 is owed, and how they are listed."""
