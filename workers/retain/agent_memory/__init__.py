"""Cloudflare Agent Memory's HTTP interface, answered from Retain's memory.

A namespace is a tenant, a profile a user or a house. docs/agent-memory.md has what is mapped to what, and what differs.
Source: https://developers.cloudflare.com/agent-memory/
"""
