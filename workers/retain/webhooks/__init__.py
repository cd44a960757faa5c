"""Webhooks: where a tenant's applications hear of runs, what is sent there, and the log of it."""
