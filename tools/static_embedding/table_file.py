"""Write the table's file format, which `retain.models.embedders.static` reads and documents."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence


def pack(pieces: Sequence[str], rows: bytes, *, dimensions: int, bits: int, multilingual: bool = False) -> bytes:
    """Return the file: zlib of a header line, the pieces (one per line), and the rows.

    rows: one signed byte per value, row after row. With 4 bits, two values share a byte, the first in its low half.
    multilingual: the pieces are those of `retain.models.embedders.multilingual`.

    Raises: ValueError when rows, pieces and dimensions do not agree, or a value does not fit 4 bits.
    """
    if len(rows) != len(pieces) * dimensions or bits not in (4, 8) or dimensions % 2:
        raise ValueError("the rows do not fit the pieces, the dimensions or the bits")
    vocabulary = "\n".join(pieces).encode()
    header: dict[str, int | str] = {
        "dim": dimensions,
        "bits": bits,
        "rows": len(pieces),
        "vocab_bytes": len(vocabulary),
    }
    if multilingual:
        header["pieces"] = "multilingual"
    packed = rows if bits == 8 else _nibbles(rows)
    return zlib.compress(json.dumps(header).encode() + b"\n" + vocabulary + packed, 9)


def _nibbles(rows: bytes) -> bytes:
    if any(8 <= value < 248 for value in rows):
        raise ValueError("a value does not fit 4 bits")
    return bytes(low & 15 | (high & 15) << 4 for low, high in zip(rows[::2], rows[1::2], strict=True))
