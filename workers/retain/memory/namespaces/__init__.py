"""Namespaces: the canonical keys of tiered memory, and the way to them from older ones."""
