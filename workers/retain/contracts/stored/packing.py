"""A document's embedding as the text that D1 stores."""

from __future__ import annotations

import sys
from array import array
from base64 import b64decode, b64encode
from binascii import Error as Base64Error

from retain.errors import Misconfigured

_SWAPPED = sys.byteorder == "big"


def packed(embedding: array[float]) -> str:
    """Return the vector as text: base64 of little-endian 32-bit floats. D1 returns BLOBs as lists of integers."""
    return b64encode(_little_endian(embedding).tobytes()).decode()


def unpacked(text: str, dimensions: int) -> array[float]:
    """Return the vector that `packed` wrote.

    Raises: Misconfigured (code `vector_dimensions_changed`) when it has another length.
    """
    values = array("f")
    try:
        values.frombytes(b64decode(text))
    except (Base64Error, ValueError) as error:
        raise Misconfigured("a stored vector cannot be read", code="vector_dimensions_changed") from error
    if len(values) != dimensions:
        raise Misconfigured(
            f"the namespace holds vectors of {len(values)} dimensions, not {dimensions}",
            code="vector_dimensions_changed",
            expected=dimensions,
            found=len(values),
        )
    return _little_endian(values)


def _little_endian(values: array[float]) -> array[float]:
    if not _SWAPPED:
        return values
    swapped = array("f", values)
    swapped.byteswap()
    return swapped
