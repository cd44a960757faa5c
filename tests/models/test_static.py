import asyncio
import hashlib
import json
import math
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import Misconfigured
from retain.models.embedders import static as static_module
from retain.models.embedders.static import StaticEmbedder, StaticTable
from retain.models.embedders.wordpiece import split_word, words
from retain.models.embedding import Embedder
from retain.testing import EmbedderSuite
from tests.support.model_server import SHIPPED_TABLE

PIECES = ["red", "blue", "##ish", "!"]
ROWS = [[3, -4], [-128, 127], [0, -1], [7, 7]]
HEADER = {"dim": 2, "bits": 8, "rows": 4, "vocab_bytes": len("\n".join(PIECES))}


PACKED_ROWS = bytes(value & 255 for row in ROWS for value in row)


_SHIPPED = StaticEmbedder(SHIPPED_TABLE)


def pack(header: object, rows: bytes = PACKED_ROWS, vocabulary: bytes | None = None) -> bytes:
    lines = "\n".join(PIECES).encode() if vocabulary is None else vocabulary
    return zlib.compress(json.dumps(header).encode() + b"\n" + lines + rows)


def small(packed: bytes) -> StaticEmbedder:
    return StaticEmbedder(lambda: packed, model="small", dimensions=2)


@pytest.mark.parametrize("name", EmbedderSuite.names())
async def test_the_contract_of_embedders(static: StaticEmbedder, tmp_path: Path, name: str) -> None:
    async def opened() -> Embedder:
        return static

    async def failing() -> Embedder:
        return StaticEmbedder(tmp_path / "absent.bin")

    await EmbedderSuite.of(opened, failing).cases()[name]()


async def test_a_vector_is_the_normalised_sum_of_the_rows_of_its_pieces() -> None:
    vectors = await small(pack(HEADER)).embed(["Red", "redish red", "redish!"])
    assert vectors == [
        [3 / 5, -4 / 5],
        [6 / math.hypot(6, 9), -9 / math.hypot(6, 9)],
        [10 / math.hypot(10, 2), 2 / math.hypot(10, 2)],
    ]


async def test_extreme_bytes_keep_their_sign() -> None:
    norm = math.hypot(128, 127)
    [vector] = await small(pack(HEADER)).embed(["blue " * 1000])
    assert vector == pytest.approx([-128 / norm, 127 / norm])


async def test_rows_of_four_bits_hold_two_values_a_byte_low_first() -> None:
    rows = bytes([0x9 << 4 | 0x3, 0x7 << 4 | 0x8, 0xF << 4 | 0x0, 0x1 << 4 | 0x1])
    packed = pack({**HEADER, "bits": 4}, rows)
    assert list(StaticTable.unpack(packed).rows.cast("b")) == [3, -7, -8, 7, 0, -1, 1, 1]


def test_the_shipped_table_is_what_its_readme_says() -> None:
    table = StaticTable.unpack(SHIPPED_TABLE.read_bytes())
    assert (table.dimensions, len(table.vocabulary), len(table.rows)) == (256, 27_623, 256 * 27_623)
    assert hashlib.sha256(SHIPPED_TABLE.read_bytes()).hexdigest() in SHIPPED_TABLE.with_name("README.md").read_text()


@given(st.text(alphabet=st.one_of(st.characters(codec=None), st.sampled_from("aeiou st.,-@19\u00e9\u2019"))))
def test_any_text_gives_the_plain_column_sums_exactly(text: str) -> None:
    table = _SHIPPED.table()
    rows = table.rows.cast("b")
    pieces = [piece for word in words(text) for piece in split_word(word, table.vocabulary)]
    sums = [sum(rows[piece * 256 + column] for piece in pieces) for column in range(256)]
    norm = math.sqrt(sum(value * value for value in sums)) or 1.0
    assert asyncio.run(_SHIPPED.embed([text])) == [[value / norm for value in sums]]


async def test_forgetting_words_changes_no_vector(monkeypatch: pytest.MonkeyPatch, static: StaticEmbedder) -> None:
    monkeypatch.setattr(static_module, "_CACHED_WORDS", 3)
    texts = ["one two three four five six", "six five four", "one two three four five six"]
    assert await StaticEmbedder(SHIPPED_TABLE).embed(texts) == await static.embed(texts)


async def test_the_table_is_read_once_and_not_before_the_first_text() -> None:
    reads: list[int] = []

    def source() -> bytes:
        reads.append(1)
        return pack(HEADER)

    embedder = StaticEmbedder(source, model="small", dimensions=2)
    assert (embedder.model, embedder.dimensions, reads) == ("small", 2, [])
    await embedder.embed(["red"])
    await embedder.embed(["blue"])
    assert reads == [1]


NEARER = {
    "refunds, not weather": (
        "refund history for sara@example.com",
        "sara@example.com was refunded 40 USD for a broken lamp",
        "It will rain in Oslo on Tuesday",
    ),
    "meaning without a shared word": (
        "Where does she work?",
        "Her job is at a hospital in Lyon",
        "The kitchen was painted yellow",
    ),
    "pets": ("What is the name of his dog?", "The puppy is called Rex", "The meeting moved to Friday"),
    "travel": ("holiday plans", "We booked flights to Lisbon for the summer vacation", "The printer is out of ink"),
}


@pytest.mark.parametrize(("query", "near", "far"), NEARER.values(), ids=NEARER)
async def test_the_text_that_answers_is_nearer_to_the_question(
    static: StaticEmbedder, query: str, near: str, far: str
) -> None:
    question, answer, other = await static.embed([query, near, far])
    assert math.fsum(map(float.__mul__, question, answer)) > math.fsum(map(float.__mul__, question, other))


@pytest.mark.parametrize("text", ["", "\u041f\u0440\u0438\u0432\u0435\u0442", "\U0001f600", "x" * 101])
async def test_a_text_without_known_pieces_gives_a_zero_vector(static: StaticEmbedder, text: str) -> None:
    assert await static.embed([text]) == [[0.0] * 256]


async def test_rows_that_cancel_give_a_zero_vector() -> None:
    rows = bytes([5, 251, 251, 5, 0, 0, 0, 0])
    assert await small(pack(HEADER, rows)).embed(["red blue"]) == [[0.0, 0.0]]


CORRUPT = {
    "empty": b"",
    "not compressed": b"{}",
    "cut short": pack(HEADER)[:-6],
    "damaged": pack(HEADER)[:-5] + b"12345",
    "header is no JSON": zlib.compress(b"header\nred"),
    "header is a list": pack([2, 8, 4]),
    "header lacks a field": pack({"dim": 2, "bits": 8, "rows": 4}),
    "header is no number": pack({**HEADER, "dim": "two"}),
    "more rows announced": pack({**HEADER, "rows": 5}),
    "rows missing": pack(HEADER, b"\x01\x02"),
    "bits unknown": pack({**HEADER, "bits": 16}),
    "vocabulary is no text": pack(HEADER, vocabulary=b"\xff" * HEADER["vocab_bytes"]),
}


@pytest.mark.parametrize("packed", CORRUPT.values(), ids=CORRUPT)
async def test_e3_a_corrupt_table_is_an_error_never_a_vector(packed: bytes) -> None:
    with pytest.raises(Misconfigured) as caught:
        await small(packed).embed(["red"])
    assert caught.value.code == "embedding_table"


async def test_e3_a_missing_table_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(Misconfigured) as caught:
        await StaticEmbedder(tmp_path / "absent.bin").embed(["red"])
    assert caught.value.code == "embedding_table"


async def test_a_table_of_other_dimensions_is_refused() -> None:
    with pytest.raises(Misconfigured) as caught:
        await StaticEmbedder(lambda: pack(HEADER)).embed(["red"])
    assert caught.value.code == "embedding_dimensions"
    assert caught.value.details == {"expected": 256, "found": 2}
