"""Agents: definitions, tools, runs and the life of an instance. For people who write agents as YAML files and functions."""
