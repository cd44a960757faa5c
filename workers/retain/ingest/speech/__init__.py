"""Who speaks in a message, and what they state plainly about themselves."""
