"""The vector index: its specification, its provisioning, and the stand-in for local development."""
