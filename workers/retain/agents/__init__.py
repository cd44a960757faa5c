"""Agents: definitions, the run loop, tools and the life of an instance."""
