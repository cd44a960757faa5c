"""Tiered memory on the host's adapters."""
