"""Principals: the names of those who do something, as world history, the ledgers and the rows of runs write them."""

from __future__ import annotations

RETAIN = "retain"
"""Retain itself, in its daily work."""


def person_named(name: str) -> str:
    """Return the principal of a person or a service, as Cloudflare Access names them."""
    return f"person:{name}"


def agent_of_type(agent_type: str) -> str:
    """Return the principal of an agent."""
    return f"agent:{agent_type}"


def key_with_id(key_id: str) -> str:
    """Return the principal of an application, by the key that it presents."""
    return f"key:{key_id}"


def user_with_id(user_id: str) -> str:
    """Return the principal of an application's user, who presents a token of their own."""
    return f"user:{user_id}"
