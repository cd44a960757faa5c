"""The synchronous client, from the asynchronous one: the same text with other words, as httpcore and psycopg do it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_WORDS: Mapping[str, str] = {
    "AsyncBaseTransport": "BaseTransport",
    "AsyncHTTPTransport": "HTTPTransport",
    "AsyncIterator": "Iterator",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "aclose": "close",
    "aiter_bytes": "iter_bytes",
    "aread": "read",
    "asynchronous": "synchronous",
    "asyncio": "time",
    "asyncio_detailed": "sync_detailed",
    "handle_async_request": "handle_request",
    "set_async_httpx_client": "set_httpx_client",
}
_TEXTS = (
    (re.compile(r"\b(?:async|await) "), ""),
    (re.compile(r"Awaitable\[(tuple\[.*\])\]\]"), r"\1]"),
    (re.compile(r"Awaitable, "), ""),
)
_NAME = re.compile(r"\b\w+\b")


def synchronous(text: str) -> str:
    """Return a module of the asynchronous client as one that blocks."""
    for pattern, instead in _TEXTS:
        text = pattern.sub(instead, text)
    return _NAME.sub(lambda name: _word(name.group()), text)


def _word(name: str) -> str:
    if name in _WORDS:
        return _WORDS[name]
    return name.removeprefix("Async") if re.match(r"Async[A-Z]", name) else name


def write_synchronous(source: Path, target: Path) -> None:
    """Write each module of a folder as one that blocks into another, new one."""
    target.mkdir()
    for path in sorted(source.glob("*.py")):
        (target / path.name).write_text(synchronous(path.read_text()))
