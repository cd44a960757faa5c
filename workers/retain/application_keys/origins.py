"""The origins of a key: whose pages may use it, and what their browsers are answered.

An origin is written as browsers write it: `https://shop.example`, with its port if that is not 443. Only a page of the same
machine may come over plain HTTP. No answer has `access-control-allow-origin: *` or `access-control-allow-credentials`: a
page sends a token itself, and no cookie.
Source: https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from retain.errors import Forbidden, InvalidInput

MAX_ORIGINS = 10
"""Most origins of a key."""
MAX_CHARACTERS = 200
"""Longest origin."""
PREFLIGHT_S = 7_200
"""How long a browser may keep the answer to a preflight: the most that Chromium keeps one.
Source: https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Access-Control-Max-Age"""
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SENT = (
    "authorization",
    "content-type",
    "idempotency-key",
    "if-match",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "openai-organization",
    "openai-project",
    "x-stainless-arch",
    "x-stainless-helper-method",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
)
"""The request headers that a page may send: also those that OpenAI's client adds to each of its requests."""
READABLE = ("x-request-id", "retry-after", "allow", "location", "x-next-cursor", "x-retain-ignored", "x-should-retry")
"""The answer's headers that a page may read, with those that every page may."""

_NAME = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
_ORIGIN = re.compile(
    rf"https://{_NAME}(\.{_NAME})*(:[1-9][0-9]{{0,4}})?|http://(localhost|127\.0\.0\.1|\[::1\])(:[1-9][0-9]{{0,4}})?"
)
_DEFAULT_PORT = re.compile(r"https:.*:443|http:.*:80")


def check_origins(origins: Sequence[str]) -> tuple[str, ...]:
    """Return the origins, each once, in order. Raises: InvalidInput (code `invalid_origin`)."""
    for origin in origins:
        if len(origin) > MAX_CHARACTERS or _ORIGIN.fullmatch(origin) is None or _DEFAULT_PORT.fullmatch(origin):
            raise InvalidInput(
                "an origin is https:// and a host in lower case, with the port if it is not 443 and nothing after it; or"
                " http:// and localhost, 127.0.0.1 or [::1]",
                code="invalid_origin",
                origin=origin[:MAX_CHARACTERS],
            )
    return tuple(sorted(set(origins)))


class CallingPage:
    """The page whose browser sent a request, as far as the answer concerns it. One for each request.

    headers: what the answer has for browsers; none where no page of another origin may come. origin: None if no page sent
    the request.
    """

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.origin: str | None = None

    def arrive(self, origin: str | None) -> None:
        """Note that a request came to where pages of other origins may come."""
        self.headers["vary"] = "origin"
        self.origin = origin

    def open(self) -> None:
        """Let the page read the answer."""
        if self.origin is not None:
            self.headers["access-control-allow-origin"] = self.origin
            self.headers["access-control-expose-headers"] = ", ".join(READABLE)


def check_origin(origin: str | None, host: str, allowed: Collection[str]) -> bool:
    """Return whether a page of another origin may use a key that allows these; False where none sent the request.

    A program, or a page of this very host and port, needs no origin. Raises: Forbidden (code `origin_not_allowed`).
    """
    if origin is None or origin in (f"https://{host}", f"http://{host}"):
        return False
    if origin not in allowed:
        raise refused_origin(origin)
    return True


def refused_origin(origin: str) -> Forbidden:
    """Return the error for a page whose origin is not allowed."""
    return Forbidden(
        "the key does not allow pages of this origin: an owner of the tenant adds it to the key's origins",
        code="origin_not_allowed",
        origin=origin[:MAX_CHARACTERS],
    )
