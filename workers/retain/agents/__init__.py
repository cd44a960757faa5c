"""Agents, written as YAML files and functions: definitions, tools, runs and the life of an instance."""
