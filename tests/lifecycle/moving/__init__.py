"""Moves of tenants between databases."""
