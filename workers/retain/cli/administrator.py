"""An administrator's connection to a deployment."""

from __future__ import annotations

import os
from collections.abc import Mapping

import httpx

from retain.errors import UpstreamFailed
from retain.errors.codes import ForeignCode

_ACCESS = {"CF_ACCESS_CLIENT_ID": "cf-access-client-id", "CF_ACCESS_CLIENT_SECRET": "cf-access-client-secret"}


def open_client(url: str) -> httpx.Client:
    """Return a client for a deployment, with the service token from the environment, if any."""
    headers = {header: os.environ[name] for name, header in _ACCESS.items() if name in os.environ}
    return httpx.Client(base_url=url, headers=headers, timeout=60)


def answer_of(
    client: httpx.Client,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    query: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Return the answer of the deployment. Raises: UpstreamFailed when there is none, or one that reports no success."""
    try:
        answer = client.request(method, path, params=query, json=None if body is None else dict(body))
    except httpx.HTTPError as error:
        raise UpstreamFailed(f"the server did not answer: {error}", code=ForeignCode("server_failed")) from error
    if not answer.is_success:
        raise UpstreamFailed(
            f"the server answered {answer.status_code}: {answer.text[:1000]}", code=ForeignCode("server_failed")
        )
    return answer
