"""Tenants: their register, and the hash-chained world history of each."""
