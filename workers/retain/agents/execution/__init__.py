"""Carry runs out: the loop, control from outside, and streams."""
