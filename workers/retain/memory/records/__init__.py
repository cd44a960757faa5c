"""Records: what is remembered, the events that made it so, and their place in D1."""
