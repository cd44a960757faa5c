"""Records: what is remembered, the events of which it is the fold, and their rows in D1."""
