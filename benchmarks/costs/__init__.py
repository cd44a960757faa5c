"""What operations cost in D1: round trips, and rows read and written."""
