"""A wire between a client and a server that a test cuts once."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_PIECE_BYTES = 65_536


class Wire:
    """A proxy for TCP on a port of its own. `url` leads through it.

    cuts: how often it was cut. connections: how many clients opened.
    """

    def __init__(self, server_url: str) -> None:
        address = urlsplit(server_url)
        assert address.hostname is not None
        assert address.port is not None
        self._server = (address.hostname, address.port)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cuts = 0
        self.connections = 0
        self._marker: bytes | None = None
        self._whole_event = False

    def cut_after_event(self, name: str) -> None:
        """Cut the next connection on which this event was sent, after the event."""
        self._marker, self._whole_event = f"event: {name}\n".encode(), True

    def cut_before_answer(self) -> None:
        """Cut the next connection on which the server answers, before any of the answer arrives."""
        self._marker, self._whole_event = b"HTTP/1.1 ", False

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                self.connections += 1
                server = socket.create_connection(self._server)
                for source, target, answers in ((client, server, False), (server, client, True)):
                    threading.Thread(target=self._pump, args=(source, target, answers), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        seen = b""
        with suppress(OSError):
            while piece := source.recv(_PIECE_BYTES):
                if answers and self._marker is not None:
                    seen += piece
                    passed = self._passed(seen)
                    if passed is not None:
                        self._marker = None
                        self.cuts += 1
                        target.sendall(piece[: max(0, len(piece) - (len(seen) - passed))])
                        break
                target.sendall(piece)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _passed(self, seen: bytes) -> int | None:
        """Return how many bytes of an answer pass before the cut, None while the marker has not come."""
        assert self._marker is not None
        found = seen.find(self._marker)
        if found < 0 or not self._whole_event:
            return None if found < 0 else found
        end = seen.find(b"\n\n", found)
        return None if end < 0 else end + 2
