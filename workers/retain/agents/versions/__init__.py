"""The agents that tenants define themselves, version by version."""
