"""Scoring a case: pure functions from what was expected and observed to scores, and the judge."""
