"""Embedding models: Workers AI, OpenAI-compatible endpoints, and the local static table."""
