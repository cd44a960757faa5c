"""Where a client sends its requests, and with which key."""

from __future__ import annotations

import re

import httpx

_KEY = re.compile(r"[!-~]+")


def checked_url(url: str) -> str:
    """Return the address of a deployment. Raises: ValueError for what is not a whole address."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"url is not an address: {error}") from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise ValueError(f"url must begin with https:// or http://, and name a host: {url!r}")
    if parsed.userinfo:
        raise ValueError("url must have no user and no password")
    if "?" in url or "#" in url:
        raise ValueError("url ends with its path: it has no ? and no #")
    return url


def checked_key(key: str) -> str:
    """Return a key or a token. Raises: ValueError, without the key, for what no header can carry."""
    if not _KEY.fullmatch(key):
        raise ValueError(
            "key must be a key or a token alone: it is empty, or has a space, a line break or a letter beyond ASCII"
        )
    return key
