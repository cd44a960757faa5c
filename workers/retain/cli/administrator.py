"""An administrator's connection to a deployment, and the commands that use one."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Mapping

import httpx

from retain.errors import InvalidInput, RetainError, UpstreamFailed
from retain.errors.codes import ForeignCode
from retain.json_text import read_json

_ACCESS = {"CF_ACCESS_CLIENT_ID": "cf-access-client-id", "CF_ACCESS_CLIENT_SECRET": "cf-access-client-secret"}

Connect = Callable[[str], httpx.Client]
"""Opens a client for the deployment at an address."""


def run_command(options: argparse.Namespace, connect: Connect) -> int:
    """Run the command that a command line names, with a client; return the process's exit status.

    options: `does`, which takes the options and the client and returns the status, and `url`, the deployment's address.
    An error of Retain is printed, with its code, and the status is 1.
    """
    does: Callable[[argparse.Namespace, httpx.Client], int] = options.does
    try:
        with connect(options.url) as client:
            return does(options, client)
    except RetainError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
        return 1


def open_client(url: str) -> httpx.Client:
    """Return a client for a deployment, with the service token from the environment, if any. Raises: InvalidInput."""
    headers = {header: os.environ[name] for name, header in _ACCESS.items() if name in os.environ}
    try:
        return httpx.Client(base_url=url, headers=headers, timeout=60)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"the address is not valid: {error}", code=ForeignCode("usage")) from error


def answer_of(
    client: httpx.Client,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    query: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Return the answer of the deployment, JSON if it has a body.

    Raises: InvalidInput for a number that JSON does not have; UpstreamFailed when there is no answer, one that reports no
        success, or one that is not JSON.
    """
    try:
        request = client.build_request(method, path, params=query, json=None if body is None else dict(body))
    except ValueError as error:
        raise InvalidInput(f"what was given cannot be sent: {error}", code=ForeignCode("usage")) from error
    try:
        answer = client.send(request)
    except httpx.HTTPError as error:
        raise UpstreamFailed(f"the server did not answer: {error}", code=ForeignCode("server_failed")) from error
    if not answer.is_success:
        raise UpstreamFailed(
            f"the server answered {answer.status_code}: {answer.text[:1000]}", code=ForeignCode("server_failed")
        )
    try:
        read_json(answer.text or "{}")
    except ValueError as error:
        raise UpstreamFailed(
            "what answered is not Retain: it sent no JSON", code=ForeignCode("server_failed")
        ) from error
    return answer
