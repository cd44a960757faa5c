"""How a write indexes a text: parts that lose nothing, and signatures as similar to each other as their vectors."""

from __future__ import annotations

import hashlib
import math
import random
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain.memory.recall.evidence import UNRELATED, CosineScale, estimated
from retain.memory.recall.preparation import (
    MAX_PARTS,
    PART_CHARACTERS,
    SIGNATURE_BITS,
    SPAN,
    WINDOW_LIMIT,
    cut,
    prepare,
    signature,
)
from retain.memory.recall.ranking import COSINES
from retain.memory.records.limits import MAX_CONTENT_BYTES
from retain.memory.records.record import Utterance
from tests.support.instances import shipped_embedder

_letters = st.sampled_from("ab .!?\n\u00a0\u3000é")
_runs = st.builds(lambda letter, count: letter * count, _letters, st.integers(1, 1500))
_texts = st.one_of(st.text(_letters, max_size=200), st.lists(_runs, max_size=8).map("".join))


def visible(text: str) -> str:
    return re.sub(r"\s", "", text)


@settings(max_examples=200)
@given(text=_texts)
@example(text="")
@example(text="a" * 5000)
@example(text=("a" * 401 + ". ") * 20)
@example(text="Why? " * 1000)
def test_cutting_loses_nothing_and_keeps_the_order(text: str) -> None:
    assert visible("".join(cut(text))) == visible(text)


@settings(max_examples=200)
@given(text=_texts)
def test_a_part_is_about_as_long_as_it_should_be(text: str) -> None:
    parts = cut(text)
    assert parts
    if text.strip():
        assert all(len(part) <= PART_CHARACTERS * 3 // 2 for part in parts)


@pytest.mark.parametrize(
    "unit",
    ["a", "a ", "a. ", "a" * 401 + ". ", "a. " + "b" * 400 + " " + "b" * 800 + ". ", "a" * 399 + " ", "é", "\n", "日"],
    ids=lambda unit: f"{unit[:4]!r} of {len(unit)}",
)
def test_the_largest_content_is_cut_without_losing_anything(unit: str) -> None:
    size = len(unit.encode())
    text = "x" + unit * ((MAX_CONTENT_BYTES - 1) // size)
    parts = cut(text)
    assert len(parts) < MAX_PARTS, "the last part is not a cut-off one"
    assert visible("".join(parts)) == visible(text)


def test_a_text_within_a_part_is_left_alone() -> None:
    for text in ("Ann likes tea.", "One. Two! Three?", "a" * PART_CHARACTERS):
        assert cut(text) == [text]


@pytest.mark.parametrize(
    ("at_ms", "head"),
    [
        (None, "Ann: "),
        (0, "1 January, 1970 (Thursday) Ann: "),
        (1_709_164_800_000, "29 February, 2024 (Thursday) Ann: "),
        (1_735_689_599_999, "31 December, 2024 (Tuesday) Ann: "),
    ],
    ids=str,
)
def test_a_turn_is_indexed_with_its_date_and_speaker(at_ms: int | None, head: str) -> None:
    prepared = prepare("I like tea.", Utterance("chat-1", 4, "Ann", at_ms))
    assert prepared.parts == (f"{head}I like tea.",)
    assert {"ann", "tea"} <= set(prepared.stems)
    assert prepared.span == SPAN
    assert prepare("I like tea.", None).parts == ("I like tea.",)


def test_every_part_carries_the_head() -> None:
    prepared = prepare("Tea is good. " * 200, Utterance("chat-1", 0, "Ann", None))
    assert len(prepared.parts) > 3
    assert all(part.startswith("Ann: ") for part in prepared.parts)


@pytest.mark.parametrize(
    ("length", "utterance", "span"),
    [
        (WINDOW_LIMIT, Utterance("chat-1", 0, "Ann"), SPAN),
        (WINDOW_LIMIT + 1, Utterance("chat-1", 0, "Ann"), 0),
        (10, None, 0),
    ],
    ids=["a turn", "a long turn", "no conversation"],
)
def test_only_a_short_turn_has_neighbours(length: int, utterance: Utterance | None, span: int) -> None:
    prepared = prepare("x" * length, utterance)
    assert prepared.span == span
    assert (prepared.terms == "") == (length > WINDOW_LIMIT)


@pytest.mark.parametrize(
    ("content", "names_time"),
    [
        ("We met last Tuesday.", True),
        ("In 2021 she moved.", True),
        ("Yesterday it rained.", True),
        ("She left three days ago.", True),
        ("See you in MAY", True),
        ("Room 20214", False),
        ("The monday-ish mood", True),
        ("It agonises me.", False),
        ("A sincere man.", False),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_content_that_names_a_time_is_marked(content: str, names_time: bool) -> None:
    assert prepare(content, None).names_time == names_time


@pytest.mark.parametrize(
    ("content", "asking"),
    [("Tea?", 1.0), ("Tea.", 0.0), ("Tea? Yes.", 0.5), ("Really?? Yes. No. Ok.", 0.5), ("no end", 0.0), ("???", 1.0)],
    ids=str,
)
def test_the_share_of_questions_is_recorded(content: str, asking: float) -> None:
    assert prepare(content, None).asking == asking


SIGNATURE_DIGEST = "4da20b0985ead5e662dd2c5bc0485735bb2d2f86d94d9766e6ffb978615c5dbb"


def test_the_signature_of_a_vector_never_changes() -> None:
    """Signatures are stored in the database: another projection would make every stored one meaningless."""
    vector = [math.sin(number) for number in range(256)]
    found = signature([vector])
    assert hashlib.sha256(found.encode()).hexdigest() == SIGNATURE_DIGEST
    assert signature([vector]) == found
    assert signature([]) == "0"


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.25, 4.0]))
def test_a_signature_depends_only_on_the_direction(seed: int, scale: float) -> None:
    vector = random_vector(seed)
    assert signature([vector]) == signature([[value * scale for value in vector]]) == signature([vector, vector])
    assert 0 < int(signature([vector]), 16) < 2**SIGNATURE_BITS
    opposite = signature([[-value for value in vector]])
    assert estimated(int(signature([vector]), 16), opposite) == pytest.approx(-1.0)
    assert estimated(int(signature([vector]), 16), signature([vector])) == 1.0


def random_vector(seed: int) -> list[float]:
    numbers = random.Random(seed)
    return [numbers.gauss(0.0, 1.0) for _ in range(256)]


async def test_signatures_are_about_as_similar_as_their_vectors() -> None:
    texts = [
        "The cat sleeps on the sofa.",
        "A kitten naps on the couch.",
        "Invoices are paid within thirty days.",
        "The bill has to be settled in a month.",
        "Ann rode her bicycle to the sea.",
        "A red bike was stolen at the beach.",
    ]
    vectors = await shipped_embedder().embed(texts)
    for vector in vectors:
        for other in vectors:
            cosine = sum(a * b for a, b in zip(vector, other, strict=True))
            about = estimated(int(signature([vector]), 16), signature([other]))
            assert about == pytest.approx(cosine, abs=0.15)


@pytest.mark.parametrize("unrelated", [0.0, 0.02, 0.1])
def test_cosines_of_models_whose_unrelated_texts_have_few_stay_as_they_are(unrelated: float) -> None:
    scale = CosineScale.of_model(unrelated)
    assert [scale.scaled(cosine) for cosine in (-1.0, 0.3, 0.9, 1.0)] == [-1.0, 0.3, 0.9, 1.0]
    assert COSINES[scale.bits(0.9)] >= 0.9 > COSINES[scale.bits(0.9) + 1]


@pytest.mark.parametrize("unrelated", [0.4, 0.78, 0.95])
def test_cosines_of_other_models_are_brought_to_the_same_scale(unrelated: float) -> None:
    scale = CosineScale.of_model(unrelated)
    assert scale.scaled(1.0) == 1.0
    assert scale.scaled(unrelated) == pytest.approx(UNRELATED)
    same = scale.bits(0.9)
    assert scale.scaled(COSINES[same]) >= 0.9 > scale.scaled(COSINES[same + 1])
