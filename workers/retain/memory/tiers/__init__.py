"""Tiered memory: hot, warm and cold stores behind one client."""
