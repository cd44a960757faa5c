"""One client's connection to the local server, which it keeps: an HTTP library would cost more than the server's answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from urllib.parse import urlsplit

LATEST_S = 120
"""How long one answer may take."""


class Connection:
    """A connection of one client, opened when it is needed. base_url: of the server."""

    def __init__(self, base_url: str) -> None:
        place = urlsplit(base_url)
        self._address = (str(place.hostname), int(place.port or 80))
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(
        self, method: str, path: str, content: object = None, headers: Mapping[str, str] | None = None
    ) -> int:
        """Send a request, with its content as JSON, and return its answer's status. 0 when it is not answered in time."""
        try:
            return await asyncio.wait_for(self._asked(method, path, content, headers or {}), LATEST_S)
        except (OSError, EOFError, TimeoutError):
            self._streams = None
            return 0

    async def _asked(self, method: str, path: str, content: object, headers: Mapping[str, str]) -> int:
        if self._streams is None:
            self._streams = await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        body = b"" if content is None else json.dumps(content).encode()
        given = {"Host": f"{self._address[0]}:{self._address[1]}", "Content-Type": "application/json", **headers}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
        writer.write(("\r\n".join([*lines, f"Content-Length: {len(body)}"]) + "\r\n\r\n").encode() + body)
        status = int((await reader.readuntil(b"\r\n")).split()[1])
        received = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        fields = dict(line.split(": ", 1) for line in received.split("\r\n") if ": " in line)
        if "content-length" in fields:
            await reader.readexactly(int(fields["content-length"]))
        else:
            while size := int((await reader.readuntil(b"\r\n")).strip() or b"0", 16):
                await reader.readexactly(size + 2)
            await reader.readuntil(b"\r\n")
        return status
