"""Recall: what a write indexes, how a query is read, where candidates come from, and how they are ranked."""
