"""Runs that wait until their instance is free, or for a time: who has to wait, in which order, and for how long."""
