"""What `http.client` writes to a socket, as a request; and its answer, as what it reads from one.

So `urllib.request` and every library on `http.client` can send by another client. One request per wire.
"""

from __future__ import annotations

import http.client
import io
from collections.abc import Callable, Mapping
from http import HTTPStatus

from retain.ports import HttpResponse

Send = Callable[[str, str, Mapping[str, str], bytes | None], HttpResponse]
"""Sends a request (method, address, headers, body) and waits for the whole answer."""


class Wire:
    """What `http.client.HTTPConnection` uses of a socket. origin: of the server, as "https://shop.example"."""

    def __init__(self, origin: str, send: Send) -> None:
        self._origin = origin
        self._send = send
        self._written = bytearray()

    def sendall(self, content: bytes) -> None:
        """Keep what is to be sent. Nothing is sent before the answer is read."""
        self._written += content

    def makefile(self, mode: str) -> io.BytesIO:  # noqa: ARG002 -- the socket's
        """Send the request and return its answer as it is read from a socket. Raises: as `send`."""
        method, target, headers, body = _parsed(bytes(self._written))
        self._written.clear()
        url = target if target.startswith(("http://", "https://")) else self._origin + target
        return io.BytesIO(_as_written(method, self._send(method, url, headers, body)))

    def close(self) -> None:
        """Do nothing: there is no connection."""


def _parsed(written: bytes) -> tuple[str, str, dict[str, str], bytes | None]:
    """Return method, target, headers and body of a request in HTTP/1.1."""
    stream = io.BytesIO(written)
    method, target, _ = stream.readline().decode("latin-1").split(" ", 2)
    headers = {name.lower(): value for name, value in http.client.parse_headers(stream).items()}
    body = stream.read()
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    return method, target, headers, body or None


def _joined(chunked: bytes) -> bytes:
    """Return a body that was written in chunks."""
    stream, body = io.BytesIO(chunked), bytearray()
    while size := int(stream.readline().split(b";")[0] or b"0", 16):
        body += stream.read(size)
        stream.readline()
    return bytes(body)


def _as_written(method: str, answer: HttpResponse) -> bytes:
    """Return an answer in HTTP/1.1, with its decoded body whole."""
    try:
        reason = HTTPStatus(answer.status).phrase
    except ValueError:
        reason = ""
    lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in answer.headers.items())]
    if method != "HEAD":
        lines.append(f"content-length: {len(answer.body)}")
    head = "\r\n".join((*lines, "connection: close", "", "")).encode("latin-1", "replace")
    return head + answer.body
