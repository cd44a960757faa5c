"""Soak, attack and fault points for a given time, with one summary."""
