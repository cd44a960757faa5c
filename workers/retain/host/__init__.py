"""Adapters of the ports on the host: a real database and a real HTTP client, without the platform."""
