"""Backends of the contracts: on a Durable Object, KV, SQL, a vector index, and in process."""
