"""Procedural memory."""
