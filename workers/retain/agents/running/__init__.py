"""Carrying runs out: the loop, what answers do to it, and how others follow."""
