"""Backups of tenants in the object store, and their restore to a point in time."""
