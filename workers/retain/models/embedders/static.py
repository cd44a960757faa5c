"""The local embedding models: a table with one row per word piece, and sums of its rows.

They need no network and only the standard library. Word order is lost, and a text without known pieces gives a zero vector:
with the English table, a text in another script. `models/README.md` says where the tables come from and how good they are.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retain.errors import Misconfigured
from retain.json_text import read_own_json
from retain.models.embedders import multilingual, wordpiece

MODEL = "static-minilm-256"
"""The English table's name."""
MULTILINGUAL = "static-multilingual-256"
"""The name of the table for many languages."""
DIMENSIONS = 256
"""The dimensions of both tables."""

TABLES: Mapping[str, str] = {MODEL: "static-minilm-256-i8.bin", MULTILINGUAL: "static-multilingual-256-i4.bin"}
"""The file of each table in `models/`, by the model's name."""


def table_file(model: str) -> str:
    """Return the name of a model's file in `models/`: a shipped table's, or for a table of your own its name and `.bin`."""
    return TABLES.get(model, f"{model}.bin")


_CACHED_WORDS = 8192
"""Most words whose sums are cached, about 1.1 kB each. When the cache is full, it is emptied."""

_BIAS = 128
_BIASED = bytes(value ^ _BIAS for value in range(256))
"""Maps a two's complement byte to its value plus `_BIAS`, so that a sum of rows never borrows from the next column."""

_LANE_BYTES = 4
"""Width of a column in a sum of rows. It overflows only after 2**24 pieces, more than any accepted text has."""


@dataclass(frozen=True, slots=True)
class StaticTable:
    """The unpacked table.

    vocabulary: piece to its number. rows: one signed byte per value, row after row. All rows have the same scale, which
    cancels when a vector is normalised. multilingual: its pieces are those of `multilingual`, not of BERT.
    """

    dimensions: int
    vocabulary: dict[str, int]
    rows: memoryview
    multilingual: bool = False

    @classmethod
    def unpack(cls, packed: bytes) -> StaticTable:
        """Read the file format: zlib of a JSON header line, the vocabulary (one piece per line), then the rows.

        The header has `dim`, `bits` (8, or 4: two values per byte, low first), `rows`, `vocab_bytes` and, for pieces of
        many scripts, `pieces` with the value `multilingual`.

        Raises: Misconfigured (code `embedding_table`) when the bytes are not such a table.
        """
        try:
            blob = zlib.decompress(packed)
            head, _, body = blob.partition(b"\n")
            header = read_own_json(head)
            dimensions, bits, count, vocabulary_bytes = (
                int(header[name]) for name in ("dim", "bits", "rows", "vocab_bytes")
            )
            pieces = body[:vocabulary_bytes].decode().split("\n")
            scripts = header.get("pieces")
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise Misconfigured("the embedding table cannot be read", code="embedding_table") from error
        rows = memoryview(body)[vocabulary_bytes:]
        if bits == 4:
            rows = memoryview(_unpack_nibbles(rows))
        if (
            bits not in (4, 8)
            or len(pieces) != count
            or len(rows) != count * dimensions
            or scripts not in (None, "multilingual")
        ):
            raise Misconfigured("the embedding table contradicts its header", code="embedding_table")
        return cls(dimensions, {piece: number for number, piece in enumerate(pieces)}, rows, scripts is not None)

    def words(self, text: str) -> list[str]:
        """Return the words of a text, of each of which `pieces` returns the pieces."""
        return multilingual.words(text) if self.multilingual else wordpiece.words(text)

    def pieces(self, word: str) -> list[int]:
        """Return the numbers of a word's pieces."""
        split = multilingual.split_word if self.multilingual else wordpiece.split_word
        return split(word, self.vocabulary)

    def lanes(self, piece: int) -> int:
        """Return the piece's row as one integer with `_LANE_BYTES` per column, low column first, each value biased."""
        row = self.rows[piece * self.dimensions : (piece + 1) * self.dimensions].tobytes()
        wide = bytearray(len(row) * _LANE_BYTES)
        wide[::_LANE_BYTES] = row.translate(_BIASED)
        return int.from_bytes(wide, "little")


def _unpack_nibbles(packed: memoryview) -> bytes:
    low, high = (bytes(((byte >> shift & 15 ^ 8) - 8) & 255 for byte in range(256)) for shift in (0, 4))
    values = bytearray(2 * len(packed))
    values[::2] = packed.tobytes().translate(low)
    values[1::2] = packed.tobytes().translate(high)
    return bytes(values)


class StaticEmbedder:
    """Embeds texts as the L2-normalised sum of their pieces' rows. Implements the `Embedder` port.

    Rows are added as big integers with one lane per column: one addition per word, at the speed of the interpreter's C
    code. The sums are exact, so a vector depends neither on the order of additions nor on earlier texts.
    """

    def __init__(self, source: Path | Callable[[], bytes], *, model: str = MODEL, dimensions: int = DIMENSIONS) -> None:
        """Take the packed table's file, or a function that returns its bytes. Nothing is read before the first text.

        model, dimensions: the table's; the index that is filled with its vectors depends on them.
        """
        self._source = source
        self._model = model
        self._dimensions = dimensions
        self._table: StaticTable | None = None
        self._unpack_sums = struct.Struct(f"<{dimensions}I").unpack
        self._sums: dict[str, tuple[int, int]] = {}

    @property
    def model(self) -> str:
        """Return the model's name."""
        return self._model

    @property
    def dimensions(self) -> int:
        """Return the length of every vector."""
        return self._dimensions

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, in order, L2-normalised; all zeros for a text without known pieces.

        Raises: Misconfigured, code `embedding_table` when the table is missing or corrupt, `embedding_dimensions` when
            its dimensions are not this embedder's.
        """
        table = self.table()
        return [self._vector(table, text) for text in texts]

    def table(self) -> StaticTable:
        """Return the table, which the first call reads and unpacks.

        Raises: as `embed`.
        """
        if self._table is None:
            table = StaticTable.unpack(self._packed())
            if table.dimensions != self._dimensions:
                raise Misconfigured(
                    "the embedding table does not have the configured number of dimensions",
                    code="embedding_dimensions",
                    expected=self._dimensions,
                    found=table.dimensions,
                )
            self._table = table
        return self._table

    def _packed(self) -> bytes:
        if not isinstance(self._source, Path):
            return self._source()
        try:
            return self._source.read_bytes()
        except OSError as error:
            raise Misconfigured("the embedding table's file cannot be read", code="embedding_table") from error

    def _vector(self, table: StaticTable, text: str) -> list[float]:
        total = count = 0
        for word in table.words(text):
            lanes, pieces = self._sums.get(word) or self._sum(table, word)
            total += lanes
            count += pieces
        offset = _BIAS * count
        values = [
            biased - offset for biased in self._unpack_sums(total.to_bytes(self._dimensions * _LANE_BYTES, "little"))
        ]
        norm = math.sqrt(sum([value * value for value in values]))
        return [value / norm for value in values] if norm else [0.0] * self._dimensions

    def _sum(self, table: StaticTable, word: str) -> tuple[int, int]:
        pieces = table.pieces(word)
        found = sum(map(table.lanes, pieces)), len(pieces)
        if len(self._sums) >= _CACHED_WORDS:
            self._sums.clear()
        self._sums[word] = found
        return found
