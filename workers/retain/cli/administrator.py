"""An administrator's connection to a deployment."""

from __future__ import annotations

import os

import httpx

_ACCESS = {"CF_ACCESS_CLIENT_ID": "cf-access-client-id", "CF_ACCESS_CLIENT_SECRET": "cf-access-client-secret"}


def open_client(url: str) -> httpx.Client:
    """Return a client for a deployment, with the service token from the environment, if any."""
    headers = {header: os.environ[name] for name, header in _ACCESS.items() if name in os.environ}
    return httpx.Client(base_url=url, headers=headers, timeout=60)
