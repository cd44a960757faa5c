"""Sentences of the languages that the rules read besides English, with the facts that they state."""
