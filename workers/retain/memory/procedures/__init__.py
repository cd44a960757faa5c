"""Procedural memory: which of an agent's workflows works best, learned from outcomes."""
