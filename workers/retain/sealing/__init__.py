"""Sealed text under a key that can be replaced, and which values have to be sealed: those with PII."""
