"""Small files of the kinds that models read."""

from __future__ import annotations

import base64
import random
import zlib
from struct import pack


def png(width: int = 3, height: int = 2, *, seed: int = 7, padding: int = 0) -> bytes:
    """Return a picture of random pixels. padding: bytes of a chunk that viewers ignore, for a size.

    Source: https://www.w3.org/TR/png-3/#5DataRep
    """
    pixels = random.Random(seed)
    rows = b"".join(b"\0" + pixels.randbytes(3 * width) for _ in range(height))
    chunks = [_chunk(b"IHDR", pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))]
    if padding:
        chunks.append(_chunk(b"reTa", pixels.randbytes(padding)))
    chunks += [_chunk(b"IDAT", zlib.compress(rows)), _chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return pack(">I", len(content)) + kind + content + pack(">I", zlib.crc32(kind + content))


PDF = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Count 0/Kids[]>>endobj\n%%EOF\n"


def data_url(content: bytes, media_type: str = "image/png") -> str:
    """Return a data URL with a content."""
    return f"data:{media_type};base64,{base64.b64encode(content).decode()}"
