"""Recall: what a write indexes, how a query is analysed, where candidates come from, and how they are ranked."""
