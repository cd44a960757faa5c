"""A function tool that asks a server with synchronous HTTP libraries."""

from __future__ import annotations

from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from retain.agents.tools.functions import ToolContext, tool

TIMEOUT_S = 60


def _by_urllib(url: str, body: str | None, context: ToolContext) -> tuple[int, str]:
    sent = Request(url, data=body.encode() if body else None, headers={"idempotency-key": context.idempotency_key})
    try:
        with urlopen(sent, timeout=TIMEOUT_S) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def _by_http_client(url: str, body: str | None, context: ToolContext) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
    headers = {"idempotency-key": context.idempotency_key}
    connection.request("POST" if body else "GET", parts.path, body, headers)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def _by_requests(url: str, body: str | None, context: ToolContext) -> tuple[int, str]:
    import requests  # some servers of the tests have no such package

    method = "POST" if body else "GET"
    headers = {"idempotency-key": context.idempotency_key}
    answer = requests.request(method, url, data=body, auth=("ada", "secret"), headers=headers, timeout=TIMEOUT_S)
    return answer.status_code, answer.text


@tool(idempotent=True)
def ask_a_server(library: str, url: str, body: str | None = None, *, context: ToolContext) -> dict[str, object]:
    """Ask a server.

    library: requests, urllib or http.client.
    """
    ask = {"requests": _by_requests, "urllib": _by_urllib, "http.client": _by_http_client}[library]
    status, text = ask(url, body, context)
    return {"status": status, "text": text[:2000]}
