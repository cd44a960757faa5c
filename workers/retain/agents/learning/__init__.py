"""Learning from a run, after it has ended: facts of its user, from the user's own words."""
