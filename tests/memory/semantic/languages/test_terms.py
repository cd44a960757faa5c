"""Languages in the full-text index: a text's terms are those of its own language, and a query finds them."""

import json
from itertools import chain, combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.probes import PROBES
from retain.memory.recall.evidence import MAX_TERMS
from retain.memory.recall.languages.detection import LATIN, language_of
from retain.memory.recall.languages.stop_words import STOP
from retain.memory.recall.languages.terms import all_terms, index_terms, language, phrase_terms, telling_terms
from retain.memory.recall.preparation import prepare
from retain.memory.recall.query import MAX_QUERY_BYTES, analyse
from retain.memory.recall.words import STOP as ENGLISH_STOP
from retain.memory.recall.words import fold, stem, words
from retain.memory.records.record import NewRecord
from retain.memory.semantic import RecallQuery
from tests.memory.semantic.counting import CountingSql
from tests.memory.semantic.substrate import PERSON, Substrate

NOW_MS = 1_780_000_000_000
_CONSONANTS = "bcdfghjklmnpqrstvwxz"


def shared(text: str, query: str) -> set[str]:
    """Return the stems of a query that the index has of a text."""
    asked, held = analyse(query, NOW_MS), {*prepare(text, None).stems}
    return {one for one in asked.stems if held & {*asked.terms(one)}}


@pytest.mark.parametrize("code", [*LATIN, "ru"])
def test_the_language_of_most_probes_shows(code: str) -> None:
    texts = [
        json.loads(line).get("text") or json.loads(line)["question"]
        for path in (PROBES / code).glob("*/*.jsonl")
        for line in path.read_text().splitlines()
    ]
    found = [language(text) for text in texts]
    assert {*found} <= {code, "en", "fr"}
    assert found.count(code) / len(found) >= 0.7


def test_no_english_probe_is_taken_for_another_language() -> None:
    for path in (PROBES / "en").glob("*/*.jsonl"):
        for line in path.read_text().splitlines():
            text = json.loads(line).get("text") or json.loads(line)["question"]
            assert language(text) == "en", text


OTHERS = {
    "Swedish": "Jag bor i Stockholm med min syster",
    "Polish": "Mieszkam w Krakowie od trzech lat",
    "Ukrainian": "Вона живе у Києві з сестрою і їхнім псом",
    "Chinese": "我住在北京",
    "Japanese": "私は東京に住んでいます",
    "Arabic": "أعيش في القاهرة",
    "names alone": "Clara Petrova, Omar Haddad",
    "nothing": "",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_what_has_no_stems_here_is_indexed_as_ever(text: str) -> None:
    assert language(text) == "en"
    assert [term for term in prepare(text, None).stems if not term.isalnum()] == []


def test_german_die_is_not_english_die() -> None:
    german = "Die Pflanzen im Büro sind die Freude von allen, aber sie brauchen Wasser."
    assert language(german) == "de"
    assert stem("die") not in prepare(german, None).stems
    assert shared(german, "Will the plants die?") == set()
    assert shared("The plants will die.", "Will the plants die?") == {"plant", "die"}


def test_each_language_finds_its_other_forms() -> None:
    assert shared("Die Rechnungen liegen bei der Buchhaltung.", "Wo ist die Rechnung?")
    rooms = analyse("¿Qué habitación tiene vistas?", NOW_MS)
    assert shared("Las habitaciones tienen vistas al mar.", rooms.text) == {*rooms.stems}
    assert shared("Анна исправила ошибки в отчёте.", "Кто исправил ошибку?")


def test_what_belongs_to_no_language_is_found_from_every_language() -> None:
    text = "Die Bestellung SO-5512 von sara.lind@example.com über 480 Euro liegt bei Frau Petrova."
    for query in ("order SO-5512", "Où est la commande SO-5512 ?", "¿Dónde está el pedido SO-5512?"):
        assert "5512" in shared(text, query), query
    assert shared(text, "What did Petrova order?") == {"petrova"}
    [phrase] = list(analyse("Was will sara.lind@example.com?", NOW_MS).exact)
    stems = prepare(text, None).stems
    assert any(stems[place : place + len(phrase)] == phrase for place in range(len(stems)))


def test_a_phrase_in_quotation_marks_is_found_in_its_language() -> None:
    text = "Frau Lorenz sagte, dass die neuen Rechnungen nicht stimmen."
    [phrase] = analyse('Wer sagte "die neuen Rechnungen" und warum?', NOW_MS).exact
    stems = prepare(text, None).stems
    assert any(stems[place : place + len(phrase)] == phrase for place in range(len(stems)))


def test_a_query_finds_texts_whose_language_does_not_show_and_those_indexed_before() -> None:
    """Before there were stems of other languages, each word had its English stem."""
    [own, *_] = [one for one in telling_terms("Wer hat Bluthochdruck?", "de").items() if "bluthochdruck" in one[0]]
    assert own[1] == (stem("bluthochdruck"),)
    assert shared("Bluthochdruck", "Wer hat Bluthochdruck?")


def test_a_short_query_whose_language_does_not_show_is_looked_for_in_all() -> None:
    text = "La señora Molina no come carne porque es vegetariana."
    assert language_of("vegetarianas", ["vegetarianas"], ENGLISH_STOP) is None
    assert shared(text, "vegetarianas")
    assert all(len(forms) <= len(LATIN) for forms in telling_terms("vegetarianas", None).values())
    assert telling_terms("one two three four five six seven eight", None)["eight"] == ()


def test_an_english_query_looks_for_its_words_alone() -> None:
    assert analyse("Where do the refunds for my orders go?", NOW_MS).forms == {}
    assert analyse("Where do the refunds for my orders go?", NOW_MS).stems == ("refund", "order", "go")


def test_stop_words_are_folded_and_no_query_is_without_words() -> None:
    for code, stop in STOP.items():
        assert all(fold(word) == word and words(word) == [word] for word in stop), code
        three = " ".join(sorted(stop)[:3])
        assert telling_terms(three, code) == {}
        assert all_terms(three, code)


@given(text=st.text(max_size=80))
def test_a_text_has_a_term_for_each_word_whatever_its_language(text: str) -> None:
    for code in ("en", *LATIN, "ru"):
        assert len(index_terms(text, code)) >= len(words(text))
        assert len(phrase_terms(text, code)) == len(words(text))


async def test_recall_finds_each_language_by_its_stems(substrate: Substrate) -> None:
    memory = substrate.memory()
    for text in (
        "Die Kundin wartet auf die Rückzahlungen der letzten beiden Bestellungen.",
        "Das Büro ist am Freitag geschlossen.",
        "Le magasin de Lyon n'accepte pas les chèques.",
        "They will die without water.",
    ):
        await memory.store(NewRecord(text), PERSON)
    for question, word in (
        ("Wer wartet auf eine Rückzahlung?", "Rückzahlungen"),
        ("Quels magasins acceptent un chèque ?", "chèques"),
        ("Do they die?", "die without"),
    ):
        assert word in (await memory.search(RecallQuery(question, 1)))[0].record.content


MANY = {
    "German": " ".join(["Die und der nicht aber ich habe", *map("".join, product(_CONSONANTS, "aeiou", _CONSONANTS))]),
    "Chinese": "".join(
        chain.from_iterable(combinations("后发个丰丑么体冲出千台周回姜干征斗曲松游系胡致范药蒙郁里钟面历苏采雕", 2))
    ),
}


@pytest.mark.parametrize("language", MANY)
async def test_a_long_query_of_words_with_several_forms_makes_statements_that_d1_takes(
    substrate: Substrate, language: str
) -> None:
    query = MANY[language].encode()[:MAX_QUERY_BYTES].decode("utf-8", "ignore")
    asked = analyse(query, NOW_MS)
    assert sum(len(asked.terms(stem)) for stem in asked.stems) > MAX_TERMS
    await substrate.store(query[:40])
    substrate.sql = counted = CountingSql(substrate.sql)
    assert await substrate.found(query) == [query[:40]]
    assert 50_000 < max(len(sql) for sql, _ in counted.statements) < 100_000
