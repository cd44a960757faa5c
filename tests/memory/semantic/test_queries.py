"""A query is only text: any query is answered, or refused with a code."""

from __future__ import annotations

import re
from contextlib import closing
from dataclasses import asdict

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from retain.errors import InvalidInput, RetainError
from retain.memory.recall import query as query_module
from retain.memory.recall.languages.kinds import KINDS
from retain.memory.recall.query import MAX_EXACT_TERMS, MAX_QUERY_BYTES, analyse
from retain.memory.recall.times.dates import DAY_MS
from tests.memory.semantic.substrate import Substrate

NOW = 1_773_847_800_000  # Wednesday, 18 March 2026
NOTE = 'Ann\'s order AB-1001 was refunded; she said "thank you" to sara@example.com.'
OPERATORS = (
    '"', "'", '""', '"Ann', 'Ann"', "Ann*", "^Ann", "Ann AND", "AND", "OR", "NOT Ann", "NEAR(Ann order)", "(Ann", "Ann)",
    "content:Ann", "{content}: Ann", "-Ann", "Ann + order", "Ann; DROP TABLE memory_records", "' OR 1=1 --", "?1", ":x",
    "\x00", "Ann\x00order", "%", "_", "[", "\\", "$.x", "a\ud800b", "\u202eAnn", "NEAR(", "a AND (b OR", "Ann^2", "***",
)  # fmt: skip


@pytest.mark.parametrize("query", OPERATORS, ids=ascii)
async def test_operators_and_quotes_of_full_text_are_harmless(substrate: Substrate, query: str) -> None:
    await substrate.store(NOTE)
    assert await substrate.found(query) in ([NOTE], [])
    assert await substrate.found(f"{query} refunded") == [NOTE]
    assert await substrate.contents() == [NOTE]


_pieces = st.sampled_from(
    [*OPERATORS, "Ann", "order", "AB-1001", "sara@example.com", "заказ", "I", "when", "2024", " "]
)
_queries = st.one_of(st.text(max_size=60), st.lists(_pieces, min_size=1, max_size=8).map(" ".join))


@settings(max_examples=150, deadline=None)
@given(query=_queries)
@example(query=" ")
@example(query="?")
@example(query="the of and")
@example(query="İstanbul ǅ ﬁne ß")
@example(query="\ud800")
@example(query="a." * 100 + "@" + "b." * 100 + "c")
async def test_any_text_is_answered_or_refused_with_a_code(query: str) -> None:
    with closing(Substrate()) as substrate:
        record_id = await substrate.store(NOTE)
        try:
            hits = await substrate.hits(query)
        except RetainError as error:
            assert isinstance(error, InvalidInput)
            assert error.code == "empty_query"
            assert not query.strip()
        else:
            assert [hit.record.id for hit in hits] in ([], [record_id])


@settings(max_examples=40, deadline=None)
@given(content=st.text(min_size=1, max_size=80))
async def test_any_text_that_can_be_stored_is_found_by_the_same_text(content: str) -> None:
    with closing(Substrate()) as substrate:
        try:
            await substrate.store(content)
        except InvalidInput as error:
            assert error.code in {"empty_content", "invalid_content"}
            return
        [vector] = await substrate.embedder.embed([content])
        expected = [content] if analyse(content, NOW).stems or any(vector) else []
        assert await substrate.found(content) == expected


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("", "empty_query"),
        (" \n\t", "empty_query"),
        ("x" * (MAX_QUERY_BYTES + 1), "query_too_large"),
        ("ж" * (MAX_QUERY_BYTES // 2 + 1), "query_too_large"),
    ],
    ids=["empty", "blank", "too large", "too large in bytes"],
)
async def test_a_query_has_bounds(substrate: Substrate, query: str, code: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        await substrate.found(query)
    assert raised.value.code == code


@pytest.mark.parametrize(
    "query",
    [
        "x" * MAX_QUERY_BYTES,
        " ".join(f"word{number}" for number in range(800)),
        "refunded " + "é " * 2000,
        "refunded " + "AB-1 " * 1600,
        "a." * 2000 + "@" + "b." * 2000 + "c refunded",
        '"refunded" ' * 700,
    ],
    ids=["one word", "many words", "many letters", "many ids", "a long address", "many quotations"],
)
async def test_the_longest_queries_are_answered(substrate: Substrate, query: str) -> None:
    await substrate.store(NOTE)
    assert await substrate.found(query) in ([NOTE], [])


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "unit", ["a", "a-", "1-", "a1-", "a.", "a. ", "dr. ", "a@", "a@a.", '"', "#", "#1", "_", "@.", '"a', "1", "id:"]
)
def test_a_query_is_parsed_in_one_pass(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Searching again from every position would take minutes for these: a model may write any query."""
    monkeypatch.setattr(query_module, "MAX_QUERY_BYTES", 1_000_000)
    assert len(analyse(unit * (200_000 // len(unit)) + " my x", NOW).exact) <= MAX_EXACT_TERMS


@pytest.mark.timeout(30)
@pytest.mark.parametrize("code", KINDS)
@pytest.mark.parametrize("unit", ["a.", "a. ", "dr. ", "a.1.", "my ", "1.", ". . "])
def test_what_kind_a_query_is_takes_time_in_proportion_to_its_length(code: str, unit: str) -> None:
    """Two ways to read each full stop would take longer than anybody waits."""
    for name, pattern in asdict(KINDS[code]).items():
        if isinstance(pattern, re.Pattern):
            read = pattern.match if name in ("question", "when") else pattern.search  # as `analyse` reads them
            found = read(unit * (MAX_QUERY_BYTES // len(unit)) + "x")
            assert found is None or unit == "my ", name


@pytest.mark.parametrize(
    ("query", "exact"),
    [
        ("refund for sara@example.com!", [("sara", "exampl", "com")]),
        ("sara.lee+x@mail.example.com.", [("sara", "lee", "x", "mail", "exampl", "com")]),
        ("order AB-1001, please", [("ab", "1001")]),
        ("order AB-1001-", [("ab", "1001")]),
        ("--AB-1001--", [("ab", "1001")]),
        ("#42 and #7", [("42",)]),
        ("v2a is short, v2ab is not", [("v2ab",)]),
        ("in 2024, on 2024-05-01", []),
        ("well-known words", []),
        ("SO_4411 and so-4411", [("so", "4411")]),
        ('he said "just do it" twice', [("just", "do", "it")]),
        ("he said “just do it” twice", [("just", "do", "it")]),
        ('"!!" twice', []),
        ("on the 24th, for a 12-week course with 45kg in 30-minute sets", []),
        ("What about order 48213?", [("48213",)]),
        ("order 482, invoice no. 77123, PO 1234, ids: 4711", [("482",), ("77123",), ("1234",), ("4711",)]),
        ("call 555-0199 about 112-1234567-7654321", [("555", "0199"), ("112", "1234567", "7654321")]),
        ("case 4711 (tracking number: 00341)", [("4711",), ("00341",)]),
        ("I paid 480,000 and $48213 and 50000, 12.50 each, 482 times, 10345%", []),
        ("from 2023-2024, 2024-05 and 20-30", []),
        ("in order 2 of 7, room 12", []),
        ("nobody@nowhere", []),
        ("a@b@c.de", [("b", "c", "de")]),
        ("a1b2@x", [("a1b2",)]),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_addresses_ids_and_quotations_are_exact_terms(query: str, exact: list[tuple[str, ...]]) -> None:
    assert list(analyse(query, NOW).exact) == exact


@pytest.mark.parametrize(
    ("query", "message", "asks_when"),
    [
        ("When did Ann leave?", False, True),
        ("when is my train?", False, True),
        ("I am at the station. When is my train?", True, False),
        ("Is my train late? Tell me.", False, False),
        ("How long did it take?", False, True),
        ("What time is the meeting?", False, True),
        ("Which year was it?", False, True),
        ("Whenever Ann left", False, False),
        ("Tell me more", True, False),
        ("Let's go", True, False),
        ("How often do I see Dr. Smith?", False, False),
        ("Which of my plants did I give to Mrs. Jones at 3.30 p.m. on St. John's day?", False, False),
        ("I live in St. Gallen. When is my train?", True, False),
        ("I was going through our last chat. What did we choose?", False, False),
        ("Could you remind me what we chose?", False, False),
        ("What is the time of arrival?", False, False),
        ("Imagine a harbour", False, False),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_the_intent_of_a_query_is_found_without_a_model(query: str, message: bool, asks_when: bool) -> None:
    analysed = analyse(query, NOW)
    assert (analysed.message, analysed.asks_when) == (message, asks_when)


@pytest.mark.parametrize(
    ("query", "of_user"),
    [
        ("Which library do I use?", True),
        ("What did you recommend for the tests?", False),
        ("The steps that you gave me", False),
        ("Could you kindly list them again?", False),
        ("Summarise my project", False),
        ("Can you show me how to test?", True),
        ("What would you recommend for the tests?", True),
        ("Could you kindly suggest a library?", True),
        ("What have you advised?", False),
        ("¿Qué me recomendarías para las pruebas?", True),
        ("你推荐什么测试", True),
        ("Can you remind me which tests we chose?", False),
        ("I am going back to our previous chat about tests. Which tool was it?", False),
        ("What did we finally decide to name it?", True),
        ("We finally decided on a name, which one?", False),
        ("Which previous jobs did I have?", True),
    ],
)
def test_a_query_is_about_what_the_user_said_unless_it_asks_for_an_answer_or_a_summary(
    query: str, *, of_user: bool
) -> None:
    assert analyse(query, NOW).of_user == of_user


@pytest.mark.parametrize(
    ("query", "request_"),
    [
        ("How do I deploy a site?", True),
        ("Which libraries are used here?", True),
        ("Can you help me with my site?", True),
        ("How many sites did I deploy?", False),
        ("What is my deadline?", False),
        ("What came first in our conversations?", False),
    ],
)
def test_a_request_asks_for_help_or_for_what_is_not_the_askers_past(query: str, *, request_: bool) -> None:
    assert analyse(query, NOW).request == request_


@pytest.mark.parametrize(
    ("query", "advice"),
    [
        ("My kitchen is a mess again. Any tips?", True),
        ("I have free time tonight, any good ideas?", True),
        ("Do you think I should wait?", True),
        ("What would you recommend for my trip?", True),
        ("Is a guide recommended for my trip?", True),
        ("How did you recommend planning my trip?", False),
        ("What was the hotel that you suggested for my trip?", False),
        ("Some advice for my trip?", True),
        ("Who gave me a tip?", False),
        ("Which ideas did Ann have?", False),
        ("Welche Ideen hatte Ann für die Küche?", False),
        ("Irgendwelche Tipps für meine Küche?", True),
        ("Welke ideeën had Ann voor de keuken?", False),
        ("Heb je nog tips voor mijn keuken?", True),
        ("アンのアイデアは何でしたか。", False),
        ("台所のコツはありますか。", True),
    ],
)
def test_a_request_for_ideas_is_one_for_advice(query: str, *, advice: bool) -> None:
    assert analyse(query, NOW).advice == advice


@pytest.mark.parametrize(
    ("query", "days"),
    [
        ("I mentioned a concert yesterday. Who played?", [-1]),
        ("I will cook for Ann tomorrow. What does she like?", []),
        ("I have a concert today. What should I wear?", []),
    ],
)
def test_a_message_asks_for_times_that_are_over(query: str, days: list[int]) -> None:
    analysed = analyse(query, NOW)
    today = NOW // DAY_MS
    assert (analysed.message, [span.from_ms // DAY_MS - today for span in analysed.times]) == (True, days)


def test_stop_words_are_left_out_unless_there_is_nothing_else() -> None:
    assert analyse("What is the refund of Ann?", NOW).stems == ("refund", "ann")
    assert analyse("who are you", NOW).stems == ("who", "ar", "you")
    assert analyse("!?", NOW).stems == ()


def test_a_querys_dates_are_relative_to_its_time() -> None:
    assert [interval.from_ms for interval in analyse("What did Ann say yesterday?", NOW).times] == [1_773_705_600_000]
    assert analyse("What did Ann say?", NOW).times == ()


@pytest.mark.parametrize(
    ("query", "speaker", "named"),
    [
        ("What did Ann say?", "Ann", True),
        ("What did Ann say?", "Ann Lee", True),
        ("Ann's tea", "ANN", True),
        ("What did Ann say?", "Annabel", False),
        ("What did he say?", "He", False),
        ("Which user complained to the assistant?", "user", False),
        ("Which user complained?", "Assistant", False),
        ("What did Ann say?", None, False),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_query_names_a_speaker_by_a_word_of_the_name(query: str, speaker: str | None, named: bool) -> None:
    assert analyse(query, NOW).names(speaker) == named
