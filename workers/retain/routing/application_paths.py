"""Paths for applications: below `/v1/`, what the administrator's side has of one tenant.

Cloudflare Access protects `/admin/` as a whole, so what an application reaches with a key is elsewhere. It is the same table
of routes under another beginning.
"""

from __future__ import annotations

import re

TENANTS, OF_OPERATORS = "/v1/tenants", "/admin/tenants"
_AGENTS, _AGENTS_OF_OPERATORS = "/v1/agents/", "/admin/agents/"
_OF_RUNS = re.compile(r"/v1/agents/[^/]+/(?:runs(?:/cancel|/[^/]{26}(?:/(?:events|outcome))?)?|procedures|decisions)")
"""An agent may be called `runs`: its own routes have other names after that."""


def operators_path(path: str) -> str | None:
    """Return the path under which the administrator's routes have what is asked for, None for any other path."""
    if path == TENANTS or path.startswith(f"{TENANTS}/"):
        return path.replace(TENANTS, OF_OPERATORS, 1)
    if _OF_RUNS.fullmatch(path) is not None:
        return path.replace(_AGENTS, _AGENTS_OF_OPERATORS, 1)
    return path if path.startswith("/admin/") else None


def applications_path(path: str) -> str:
    """Return the path of an administrator's route under which applications reach it."""
    for operators, applications in ((OF_OPERATORS, TENANTS), (_AGENTS_OF_OPERATORS, _AGENTS)):
        if path == operators or path.startswith(operators.removesuffix("/") + "/"):
            return path.replace(operators, applications, 1)
    return path
