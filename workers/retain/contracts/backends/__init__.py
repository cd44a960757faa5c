"""Backends of the contracts: on a Durable Object, KV, SQL and a vector index, and in process."""
