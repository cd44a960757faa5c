"""Memories as an operator reads and changes them."""
