"""Words as the full-text index stores them: SQLite's tokenizers find in them exactly what was stored."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from retain.memory.recall.languages.terms import language
from retain.memory.recall.preparation import prepare
from retain.memory.recall.stemmer import porter_stem
from retain.memory.recall.wording import undisguised
from retain.memory.recall.words import STOP, fold, scope_tag, stem, tagged, words

ROOT = Path(__file__).parents[3]


class Tokens:
    """The tokens that FTS5 makes of texts with one of its tokenizers."""

    def __init__(self, tokenizer: str) -> None:
        self._connection = sqlite3.connect(":memory:")
        self._connection.execute(f"CREATE VIRTUAL TABLE t USING fts5 (content, tokenize = '{tokenizer}')")
        self._connection.execute("CREATE VIRTUAL TABLE v USING fts5vocab ('t', 'instance')")

    def close(self) -> None:
        self._connection.close()

    def of(self, texts: Sequence[str]) -> list[list[str]]:
        """Return each text's tokens, in order."""
        self._connection.execute("DELETE FROM t")
        self._connection.executemany("INSERT INTO t (rowid, content) VALUES (?, ?)", enumerate(texts))
        found: list[list[str]] = [[] for _ in texts]
        for doc, term in self._connection.execute("SELECT doc, term FROM v ORDER BY doc, offset"):
            found[doc].append(term)
        return found


@pytest.fixture(scope="module")
def porter() -> Iterator[Tokens]:
    with closing(Tokens("porter unicode61")) as made:
        yield made


@pytest.fixture(scope="module")
def plain() -> Iterator[Tokens]:
    with closing(Tokens("unicode61")) as made:
        yield made


def documented_words() -> list[str]:
    """Return every word of ASCII letters in the repository's own documentation and code."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("workers/**/*.py"), *ROOT.glob("agents/*.yaml")]
    found = {word for page in pages for word in re.findall(r"[a-z]+", page.read_text("utf-8").lower())}
    return sorted(found)


def test_the_stems_of_documented_words_equal_those_of_fts5s_porter_tokenizer(porter: Tokens) -> None:
    listed = documented_words()
    assert len(listed) > 2_000
    expected = [tokens[0] for tokens in porter.of(listed)]
    assert [porter_stem(word) for word in listed] == expected


_SUFFIXES = (
    "", "s", "es", "ies", "sses", "ss", "ed", "eed", "ing", "y", "ational", "tional", "enci", "anci", "izer", "logi", "bli",
    "alli", "entli", "eli", "ousli", "ization", "ation", "ator", "alism", "iveness", "fulness", "ousness", "aliti", "iviti",
    "biliti", "icate", "ative", "alize", "iciti", "ical", "ful", "ness", "al", "ance", "ence", "er", "ic", "able", "ible",
    "ant", "ement", "ment", "ent", "ion", "sion", "tion", "ou", "ism", "ate", "iti", "ous", "ive", "ize", "e", "l", "ll",
    "at", "bl", "iz", "atted", "blling", "izing",
)  # fmt: skip
_stems = st.text("aeiouybcdlnrstvwxz", max_size=7)
_words = st.builds(
    "".join, st.tuples(_stems, st.sampled_from(_SUFFIXES), st.sampled_from(("", "s", "ed", "ing", "ly")))
)


@settings(max_examples=300, deadline=None)
@given(listed=st.lists(_words.filter(bool), min_size=1, max_size=30))
@example(
    listed=["a", "as", "is", "yes", "sky", "agreed", "feed", "hopping", "hoping", "falling", "yyy", "eed", "ied", "ing"]
)
@example(listed=["yyed", "yying", "zloyying", "ies", "sses", "eed", "aeed"])
@example(listed=["x" * 64, "x" * 65, "x" * 63 + "s", "x" * 64 + "s", "x" * 65 + "s", "oed", "ees", "aies"])
def test_the_stem_of_any_word_equals_that_of_fts5s_porter_tokenizer(porter: Tokens, listed: list[str]) -> None:
    assert [porter_stem(word) for word in listed] == [tokens[0] for tokens in porter.of(listed)]


@settings(max_examples=300, deadline=None)
@given(listed=st.lists(st.text("abeilnorstyz0189", min_size=1, max_size=12), min_size=1, max_size=30))
def test_the_stem_of_letters_and_digits_equals_that_of_fts5s_porter_tokenizer(
    porter: Tokens, listed: list[str]
) -> None:
    assert [porter_stem(word) for word in listed] == [tokens[0] for tokens in porter.of(listed)]


def test_nothing_is_left_to_fold_in_a_word_of_any_letter(plain: Tokens) -> None:
    """Every character of the basic plane inside a word: what a query looks for is what the index has.

    Some vowels of New Tai Lue and two Vedic signs became letters later than SQLite's tables: such words are found by
    the vector index alone.
    """
    characters = [chr(code) for code in range(0x80, 0x10000) if not 0xD800 <= code < 0xE000]
    expected = [[f"tag{word}" for word in words(f"q{character}q")] for character in characters]
    found = plain.of([" ".join(tokens) for tokens in expected])
    different = [character for character, one, other in zip(characters, expected, found, strict=True) if one != other]
    assert all("\u19b0" <= character <= "\u19c9" or character in "\u1cf2\u1cf3" for character in different)


@settings(max_examples=150, deadline=None)
@given(text=st.text(max_size=60), tag=st.sampled_from([scope_tag("acme", "tenant"), scope_tag("a", "agent.b")]))
@example(text="Λόγος ΤΗΣ ΟΔΟΥ", tag="abcdefgh")
@example(text="\u017ftraße İstanbul ǅur ﬁ µm K Å", tag="abcdefgh")
def test_every_token_of_the_index_is_a_tag_followed_by_a_stem(plain: Tokens, text: str, tag: str) -> None:
    stems = list(prepare(text, None).stems)
    if any("\u19b0" <= character <= "\u19c9" or character in "\u1cf2\u1cf3" for character in text) or not all(
        ord(character) < 0x10000 for character in text
    ):
        return
    assert plain.of([tagged(tag, stems)]) == [[tag + found for found in stems]]


@given(text=st.text(max_size=40))
def test_folding_twice_is_folding_once(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(text=st.text(max_size=40))
def test_case_makes_no_difference(text: str) -> None:
    assert words(text.upper().lower()) == words(text.upper())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("...", []),
        ("Ann's order_no: AB-1001!", ["ann", "s", "order", "no", "ab", "1001"]),
        ("naïve CAFÉ Ærø", ["naive", "cafe", "ærø"]),
        ("Λόγος", ["λογοσ"]),
        ("заказ ёж", ["заказ", "еж"]),
        ("한국어", [fold("한국어")]),
        ("x²", ["x²"]),
        ("客户的订单已取消", ["客户", "户的", "的订", "订单", "单已", "已取", "取消"]),
        ("订单", ["订单"]),
        ("茶", ["茶"]),
        ("订单AB-1001号", ["订单", "ab", "1001", "号"]),
        ("がんばれ。", ["かん", "んは", "はれ"]),
        ("ｶﾀｶﾅ", ["ｶﾀ", "ﾀｶ", "ｶﾅ"]),
        ("คำสั่ง ๑๒๓", ["คำ", "ำส", "สง", "๑๒๓"]),
        ("\u0e31", []),
    ],
    ids=ascii,
)
def test_words_are_folded_runs_of_letters_and_digits(text: str, expected: list[str]) -> None:
    assert words(text) == expected


UNSPACED = "客户的订单已取消お茶がกำลังລາວကမြန်ខ្មែរ"


@given(sentence=st.text(UNSPACED, min_size=1, max_size=12), data=st.data())
def test_every_part_of_a_run_without_spaces_is_found(sentence: str, data: st.DataObject) -> None:
    """Word by word and in order, as full text matches a phrase; a single letter alone."""
    [letters] = ["".join(filter(str.isalnum, fold(sentence)))]
    if not letters:
        return
    start = data.draw(st.integers(0, len(letters) - 1))
    part = letters[start : data.draw(st.integers(start + 1, len(letters)))]
    indexed, asked = list(prepare(sentence, None).stems), words(part)
    assert any(indexed[place : place + len(asked)] == asked for place in range(len(indexed)))
    assert len(indexed) <= 2 * len(letters)


@given(text=st.text(st.characters(max_codepoint=0x0DFF), max_size=60))
def test_a_text_with_spaces_is_indexed_by_its_words(text: str) -> None:
    assume(language(text) == "en")
    spelled, shown = words(text), words(undisguised(text))
    seen = dict.fromkeys(stem(word) for word in shown if word not in spelled)
    assert prepare(text, None).stems == (*(stem(word) for word in spelled), *seen)


def test_stop_words_are_few_words() -> None:
    assert all(words(word) == [word] for word in STOP)
    assert {"the", "of", "is"} <= STOP
    assert STOP.isdisjoint({"refund", "when", "time", "first", "new", "good"} - {"when"})


def test_each_scope_has_its_own_tag_of_eight_letters() -> None:
    pairs = [(f"tenant-{number}", scope) for number in range(300) for scope in ("tenant", "agent.sdr", "house.sales")]
    tags = {scope_tag(*pair) for pair in pairs}
    assert len(tags) == len(pairs)
    assert all(re.fullmatch(r"[a-z2-7]{8}", tag) for tag in tags)
    assert scope_tag("acme", "agent.sdr") == scope_tag("acme", "agent.sdr")
    assert scope_tag("acme", "tenant") != scope_tag("acm", "etenant")


def test_a_stem_does_not_depend_on_what_was_stemmed_before() -> None:
    assert [stem(word) for word in ("refunds", "refunded", "refunding", "refund")] == ["refund"] * 4
