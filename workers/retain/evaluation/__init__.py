"""Evaluation: datasets, runs of an agent or of recall over them, scorers, comparison."""
