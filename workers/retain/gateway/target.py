"""A tool's address: which are allowed, and how arguments become part of its path.

The grammar is a list of what is allowed, not of what is forbidden: an authority is a lower-case host name with an
optional port, so that user information, IP addresses in any spelling, trailing dots and the like cannot be
written. Arguments reach only the path, percent-encoded, and cannot add or remove a segment.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote

from retain.errors import InvalidInput, LimitExceeded

MAX_URL_BYTES = 16_384
"""Source: https://developers.cloudflare.com/workers/platform/limits/#request-and-response-limits"""

_URL = re.compile(r"(https?)://([^/?#]*)(/[^?#]*)?(?:\?([^#]*))?")
_ADDRESS = re.compile(r"(https?)://([\x21-\x7e]*?)(?:[/?#]|$)", re.ASCII | re.IGNORECASE)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_PORT = r"(?::[1-9][0-9]{0,4})?"
# The last label starts with a letter: a host that ends in a number is an IPv4 address, in decimal, octal or hex.
# Source: https://url.spec.whatwg.org/#ends-in-a-number-checker
_PUBLIC = re.compile(rf"((?:{_LABEL}\.)+[a-z](?:[a-z0-9-]{{0,61}}[a-z0-9])?){_PORT}")
_LOOPBACK = re.compile(rf"(?:localhost|127\.0\.0\.1|\[::1\]){_PORT}")
_RESERVED = (
    *("localhost", "localdomain", "local", "internal", "lan", "home.arpa"),
    *("corp", "home", "intranet", "private", "svc", "test", "invalid"),
)
"""Names that only a private network resolves, or nobody. Source: https://www.rfc-editor.org/rfc/rfc6761,
https://www.rfc-editor.org/rfc/rfc6762#appendix-G
"""
_HTTPS_PORT = 443
_LEAST_OTHER_PORT = 1024
_MOST_PORT = 65_535
_BAD_PORTS = frozenset(
    (1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080)
)
"""Ports above 1023 that belong to other protocols. Source: https://fetch.spec.whatwg.org/#port-blocking"""
_DATABASE_PORTS = frozenset((1433, 1521, 3306, 3389, 5432, 5900, 6379, 9042, 11211, 27017))
"""Ports that belong to databases, caches and desktops, which speak no HTTP."""
_MAX_HOST_CHARACTERS = 253

_PIECES = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_PATH = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/%-]*")
_SEPARATOR = re.compile(r"%(?:2F|5C|[01][0-9A-F]|7F|25(?:2[EF]|5C|00))", re.IGNORECASE)
"""In an encoded argument: slash, backslash and control characters; and dot, slash, backslash and null encoded once more.

An upstream that decodes a path before it splits it would see another path than the tool's owner configured.
"""
_QUERY = re.compile(r"[A-Za-z0-9._~!$&'()*+,;=:@/?%-]*")


def check_target(scheme: str, authority: str, *, allow_loopback: bool) -> None:
    """Refuse an upstream that a tool must not have.

    What a public name resolves to is for `retain.gateway.resolver`, if the deployment has one: on Cloudflare a Worker has
    no private network to reach, and a self-hosted workerd refuses private addresses unless its configuration allows them.
    Source: https://github.com/cloudflare/workerd/blob/main/src/workerd/server/workerd.capnp (struct Network)

    Raises: InvalidInput (code `forbidden_upstream`).
    """
    if _LOOPBACK.fullmatch(authority):
        if allow_loopback and int(authority.rpartition("]")[2].partition(":")[2] or 0) <= _MOST_PORT:
            return
        raise _forbidden("an upstream on this machine needs the development setting")
    public = _PUBLIC.fullmatch(authority)
    if public is None or len(public[1]) > _MAX_HOST_CHARACTERS:
        raise _forbidden("an upstream must be a public host name in lower case, with an optional port")
    if any(public[1].endswith(f".{name}") for name in _RESERVED):
        raise _forbidden("the upstream's name belongs to private networks")
    if scheme != "https":
        raise _forbidden("an upstream must be https")
    if not _is_web_port(int(authority.partition(":")[2] or _HTTPS_PORT)):
        raise _forbidden("an upstream's port must be 443, or one from 1024 on that no other protocol has")


def check_webhook_url(url: str, *, allow_loopback: bool) -> str:
    """Return the authority of an address to which messages are sent.

    Raises: InvalidInput (code `invalid_webhook_url`), and as `check_target`.
    """
    try:
        template = parse_url_template(check_length(url))
    except (InvalidInput, LimitExceeded) as error:
        raise InvalidInput(f"not an address for messages: {error.message}", code="invalid_webhook_url") from error
    if template.places:
        raise InvalidInput("the address of a webhook has no placeholders", code="invalid_webhook_url")
    check_target(template.scheme, template.authority, allow_loopback=allow_loopback)
    return template.authority


def check_url(url: str, *, allow_loopback: bool) -> str:
    """Return the authority, in lower case, of an address that a function tool asks. Path and query are its own.

    Raises: InvalidInput (code `invalid_url`); LimitExceeded (code `url_too_long`); and as `check_target`.
    """
    match = _ADDRESS.match(check_length(url))
    if match is None:
        raise InvalidInput("the address is not a valid HTTP address", code="invalid_url")
    authority = match[2].lower()
    check_target(match[1].lower(), authority, allow_loopback=allow_loopback)
    return authority


def is_loopback(authority: str) -> bool:
    """Return whether an authority that was checked is this machine's."""
    return _LOOPBACK.fullmatch(authority) is not None


@dataclass(frozen=True, slots=True)
class UrlTemplate:
    """A URL with placeholders for arguments in its path.

    origin: scheme and authority. pieces: of the path, literals and argument names alternately, a literal first.
    query: the fixed part, encoded, "" when there is none. query_names: the names it holds.
    """

    scheme: str
    authority: str
    pieces: tuple[str, ...]
    query: str
    query_names: frozenset[str]

    @property
    def places(self) -> tuple[str, ...]:
        """Return the names of the arguments in the path."""
        return self.pieces[1::2]

    def expand(self, arguments: Mapping[str, object]) -> str:
        """Return the URL without its query, with the arguments percent-encoded.

        Raises: InvalidInput (code `invalid_arguments`) for an argument that is missing or empty, is not a scalar, or
            holds a separator of paths or a control character, also an encoded one, or would make a segment `.` or
            `..`; LimitExceeded (code `url_too_long`).
        """
        origin = f"{self.scheme}://{self.authority}"
        if len(self.pieces) == 1:
            return origin + self.pieces[0]
        parts = list(self.pieces)
        for index in range(1, len(parts), 2):
            name = parts[index]
            text = as_text(name, arguments.get(name))
            if not text:
                raise invalid_argument(f"/{name}", "it is part of the URL's path and must not be empty")
            if _SEPARATOR.search(text) is not None:
                raise invalid_argument(f"/{name}", "it is part of the URL's path and must not hold a separator")
            parts[index] = text
        path = "".join(parts)
        # Clients resolve dot segments before they send, which would leave the path that the tool's owner configured.
        if "/." in path and _has_dot_segment(path):
            raise invalid_argument("", "they would put a dot segment into the URL's path")
        return origin + path


def parse_url_template(text: str) -> UrlTemplate:
    """Return the template of an http or https URL whose path may hold `{name}`.

    Raises: InvalidInput (code `invalid_tool_configuration`).
    """
    match = _URL.fullmatch(text)
    if match is None:
        raise _malformed("the url is not an http or https URL without a fragment")
    scheme, authority, path, query = match[1], match[2], match[3] or "/", match[4] or ""
    pieces = tuple(_PIECES.split(path))
    literals = "".join(pieces[::2])
    if not _PATH.fullmatch(literals):
        raise _malformed("the url's path holds a character that must be percent-encoded, or a malformed placeholder")
    if "%2e" in literals.lower() or _has_dot_segment(path):
        raise _malformed("the url's path holds a dot segment")
    if len(set(pieces[1::2])) != len(pieces[1::2]):
        raise _malformed("the url's path names an argument twice")
    if not _QUERY.fullmatch(query):
        raise _malformed("the url's query holds a character that must be percent-encoded; it cannot take arguments")
    names = frozenset(name for name, _ in parse_qsl(query, keep_blank_values=True))
    return UrlTemplate(scheme, authority, pieces, query, names)


def as_text(name: str, value: object) -> str:
    """Return a scalar argument percent-encoded, so that every character except letters, digits and `_.-~` is escaped.

    Raises: InvalidInput (code `invalid_arguments`).
    """
    if not isinstance(value, str | int | float):  # bool is an int: `true` and `false`
        raise invalid_argument(f"/{name}", "it is part of the URL and must be a text, a number or a boolean")
    try:
        return quote(value if isinstance(value, str) else json.dumps(value, allow_nan=False), safe="")
    except ValueError as error:  # a lone surrogate, NaN or infinity
        raise invalid_argument(f"/{name}", "it cannot be written in a URL") from error


def check_length(url: str) -> str:
    """Return the URL. Raises: LimitExceeded (code `url_too_long`)."""
    if len(url) > MAX_URL_BYTES:
        raise LimitExceeded("the arguments make the URL too long", code="url_too_long", limit_bytes=MAX_URL_BYTES)
    return url


def invalid_argument(path: str, problem: str) -> InvalidInput:
    """Return the error for the argument at this JSON pointer. Never quotes the value."""
    where = f"argument '{path}'" if path else "the arguments"
    return InvalidInput(f"{where}: {problem}", code="invalid_arguments", path=path)


def _is_web_port(port: int) -> bool:
    if port == _HTTPS_PORT:
        return True
    return _LEAST_OTHER_PORT <= port <= _MOST_PORT and port not in _BAD_PORTS | _DATABASE_PORTS


def _has_dot_segment(path: str) -> bool:
    return any(segment in (".", "..") for segment in path.split("/"))


def _forbidden(problem: str) -> InvalidInput:
    return InvalidInput(problem, code="forbidden_upstream")


def _malformed(problem: str) -> InvalidInput:
    return InvalidInput(problem, code="invalid_tool_configuration")
