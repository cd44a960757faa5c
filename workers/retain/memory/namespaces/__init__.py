"""Namespaces: the canonical keys of tiered memory, and the patterns of older ones."""
