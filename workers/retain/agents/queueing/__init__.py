"""Runs that wait until their instance is free: who has to wait, in which order, and for how long."""
