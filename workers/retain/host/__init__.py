"""Adapters of the ports on the host: a real database, a real HTTP client, no platform."""
