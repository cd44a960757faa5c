"""Stemmers of the languages that full text is indexed in, except English."""
