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

LOOPBACK = ("127.0.0.1", "::1", "localhost")
_ACCESS = {"CF_ACCESS_CLIENT_ID": "cf-access-client-id", "CF_ACCESS_CLIENT_SECRET": "cf-access-client-secret"}

Connect = Callable[[str], httpx.Client]
"""Opens a client for the deployment at an address."""


def run_command(options: argparse.Namespace, connect: Connect) -> int:
    """Run the command that a command line names, with a client; return the process's exit status.

    options: `does`, which takes the options and the client and returns the status, and `url`, the deployment's address.
    An error of Retain is printed, with its code, and the status is 1.
    """
    does: Callable[[argparse.Namespace, httpx.Client], int] = options.does

    def run() -> int:
        with connect(options.url) as client:
            return does(options, client)

    return exit_status(run)


def exit_status(command: Callable[[], int]) -> int:
    """Return what a command returns, or 1 after printing why it failed: an error of Retain, or what an answer lacks."""
    try:
        return command()
    except KeyError as missing:
        print(other_version(missing), file=sys.stderr)
    except RetainError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
    return 1


def other_version(missing: KeyError) -> str:
    """Return what is reported when an answer lacks a member that every answer of Retain has."""
    return f"what answered is not this version of Retain: its answer has no {missing}"


def fits_header(text: str) -> bool:
    """Return whether a secret can be sent in a header: none has a space, a line break or a letter beyond ASCII."""
    return text.isascii() and text.isprintable() and " " not in text


def open_client(url: str) -> httpx.Client:
    """Return a client for a deployment, with the service token and the proxy of the environment, if any.

    No proxy reaches a server of this machine. Raises: InvalidInput.
    """
    headers = {header: os.environ[name] for name, header in _ACCESS.items() if name in os.environ}
    for name, header in _ACCESS.items():
        if not fits_header(headers.get(header, "")):
            raise InvalidInput(f"{name} has characters that no service token has", code=ForeignCode("usage"))
    try:
        proxied = httpx.URL(url).host not in LOOPBACK
        return httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=proxied)
    except httpx.InvalidURL as error:
        raise InvalidInput(f"the address is not valid: {error}", code=ForeignCode("usage")) from error
    except (ImportError, ValueError) as error:
        why = str(error).partition(". ")[0]
        raise InvalidInput(
            f"the proxy that the environment names cannot be used: {why}", code=ForeignCode("usage")
        ) from error


def answer_of(
    client: httpx.Client,
    method: str,
    path: str,
    body: Mapping[str, object] | None = None,
    query: Mapping[str, str] | None = None,
) -> httpx.Response:
    """Return the answer of the deployment, an object in JSON if it has a body.

    Raises: InvalidInput for a number that JSON does not have; UpstreamFailed when there is no answer, one that reports no
        success, or one that is not an object.
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
        found = read_json(answer.text or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UpstreamFailed(
            "what answered is not Retain: it sent no object in JSON", code=ForeignCode("server_failed")
        )
    return answer
