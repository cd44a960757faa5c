"""The parts of the table's build that need no numpy. The rest is run by hand; `models/README.md` says how."""

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.models.embedders.static import StaticEmbedder, StaticTable
from tests.support.model_server import SHIPPED_TABLE
from tools.static_embedding.table_file import pack
from tools.static_embedding.wordnet import texts, texts_of_line

LINE = (
    "02084071 05 n 03 dog 0 domestic_dog 0 Canis_familiaris 0 022 @ 02083346 n 0000 | a member of the genus Canis; "
    '"the dog barked all night"; "a dog (a pet) sleeps"  \n'
)


def test_a_synset_gives_its_definition_its_words_and_its_examples() -> None:
    assert list(texts_of_line(LINE)) == [
        "dog: a member of the genus Canis",
        "a member of the genus Canis",
        "dog, domestic dog, Canis familiaris",
        "the dog barked all night",
        "a dog (a pet) sleeps",
    ]


def test_the_number_of_words_is_hexadecimal_and_syntactic_markers_are_dropped() -> None:
    words = " ".join(f"w{number} 0" for number in range(10))
    line = f"00000001 00 a 0b galore(ip) 0 {words} 000 | in great numbers\n"
    assert list(texts_of_line(line))[:2] == ["galore: in great numbers", "in great numbers"]
    assert list(texts_of_line(line))[2].split(", ") == ["galore", *(f"w{number}" for number in range(10))]


def test_texts_are_unique_long_enough_and_always_in_the_same_order(tmp_path: Path) -> None:
    (tmp_path / "data.noun").write_text("  1 This software\n" + LINE + LINE.replace("the dog", "the old dog"))
    (tmp_path / "data.verb").write_text("00000002 00 v 01 go 0 000 | move\n")
    found = texts(tmp_path)
    assert found == texts(tmp_path)
    assert sorted(found) == sorted([*texts_of_line(LINE), "the old dog barked all night"])


tables = st.integers(1, 6).flatmap(
    lambda count: st.tuples(
        st.lists(st.text("abcdef#", min_size=1), min_size=count, max_size=count, unique=True),
        st.lists(st.lists(st.integers(-7, 7), min_size=4, max_size=4), min_size=count, max_size=count),
    )
)


@pytest.mark.parametrize("bits", [4, 8])
@given(table=tables)
def test_what_is_packed_can_be_unpacked(bits: int, table: tuple[list[str], list[list[int]]]) -> None:
    pieces, rows = table
    flat = bytes(value & 255 for row in rows for value in row)
    unpacked = StaticTable.unpack(pack(pieces, flat, dimensions=4, bits=bits))
    assert unpacked.dimensions == 4
    assert list(unpacked.vocabulary) == pieces
    assert [list(unpacked.rows.cast("b")[at : at + 4]) for at in range(0, len(flat), 4)] == rows


def test_the_shipped_table_packs_to_an_equal_embedder() -> None:
    table = StaticTable.unpack(SHIPPED_TABLE.read_bytes())
    sample = random.Random(0).sample(list(table.vocabulary), 200)
    rows = b"".join(
        table.rows[256 * number : 256 * number + 256] for number in map(table.vocabulary.__getitem__, sample)
    )
    packed = pack(sample, rows, dimensions=256, bits=8)
    copy = StaticEmbedder(lambda: packed)
    words = [piece for piece in sample if not piece.startswith("##")]
    assert asyncio.run(copy.embed(words)) == asyncio.run(StaticEmbedder(SHIPPED_TABLE).embed(words))


@pytest.mark.parametrize(
    ("rows", "dimensions", "bits"),
    [(b"\x00" * 6, 4, 8), (b"\x00" * 8, 4, 16), (b"\x00" * 6, 3, 4), (b"\x08" * 8, 4, 4)],
    ids=["too few rows", "unknown bits", "odd dimensions", "a value over 4 bits"],
)
def test_rows_that_do_not_fit_are_refused(rows: bytes, dimensions: int, bits: int) -> None:
    with pytest.raises(ValueError, match="fit"):
        pack(["a", "b"], rows, dimensions=dimensions, bits=bits)
