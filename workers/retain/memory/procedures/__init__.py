"""Procedural memory: which of an agent's workflows works, learned from outcomes."""
