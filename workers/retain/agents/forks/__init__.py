"""Forks: runs that begin with the turns of another run of their instance."""
