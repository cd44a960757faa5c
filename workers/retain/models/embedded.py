"""Contents within a JSON body: written as base64 piece by piece, when the body is sent.

An image of 5 MiB as base64, in a data URL, as JSON and as a request's text would be in memory several times, of 128 MB. Here
a body has a mark where a content belongs, and is written once, into memory of its final size.
"""

from __future__ import annotations

import base64
import io
import json
import re
import secrets
from collections.abc import Callable, Mapping

WriteContent = Callable[[bytes], str]
"""Returns what stands for a content in a text of the body."""
_PIECE_BYTES = 3 * 65_536
"""How much is encoded at once: base64 of a multiple of three bytes needs no padding."""


def as_base64(content: bytes) -> str:
    """Return a content as base64."""
    return base64.b64encode(content).decode()


class EmbeddedContents:
    """The contents of one request. A mark cannot occur in a text by chance or intent: it is random."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(16)
        self._contents: list[bytes] = []

    def mark(self, content: bytes) -> str:
        """Return a mark that stands for a content's base64 in any string of the body."""
        self._contents.append(content)
        return f"{self._secret}:{len(self._contents) - 1};"

    def body(self, payload: Mapping[str, object]) -> str | bytes:
        """Return the payload as JSON, with the contents instead of their marks: bytes, if there are any."""
        text = json.dumps(payload, separators=(",", ":"), allow_nan=False)
        if not self._contents:
            return text
        texts = re.split(f"{self._secret}:([0-9]+);", text)  # texts, and between them the numbers of contents
        contents = [self._contents[int(number)] for number in texts[1::2]]
        size = sum(map(len, texts[::2])) + sum(map(_encoded_bytes, contents))
        written = io.BytesIO(bytes(size))
        written.write(texts[0].encode())
        for content, after in zip(contents, texts[2::2], strict=True):
            for start in range(0, len(content), _PIECE_BYTES):
                written.write(base64.b64encode(content[start : start + _PIECE_BYTES]))
            written.write(after.encode())
        return written.getvalue()


def _encoded_bytes(content: bytes) -> int:
    return (len(content) + 2) // 3 * 4
