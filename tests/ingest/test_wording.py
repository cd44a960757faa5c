"""Recalled text is recognised under disguises, frames and trivial rewording, and what says something else is stored."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.agents.tools.built_in import CallContext, StoreMemory
from retain.memory.recall.wording import normalised, statement, undisguised, wording
from retain.memory.recalled import without_recalled
from tests.ingest.substrate import IngestSubstrate
from tests.memory.semantic.substrate import AGENT, HOUSE, PERSON

CALL = CallContext("01HF0000000000000000000000", 1, 0)
LYON = "I moved to Lyon."
OFFICE = "The Lyon office doesn't open before 9:30 on the first floor."

SAME = {
    "as it is": (LYON, "I moved to Lyon."),
    "without the period": (LYON, "I moved to Lyon"),
    "in capitals": (LYON, "I MOVED TO LYON"),
    "with other spacing": (LYON, " I  moved\nto\tLyon. "),
    "as an item of a list": (LYON, "- I moved to Lyon."),
    "in quotation marks": (LYON, "\u201cI moved to Lyon.\u201d"),
    "a prefix": (LYON, "I recall: I moved to Lyon."),
    "a prefix with that": (LYON, "I remember that I moved to Lyon."),
    "a prefix without a mark": (LYON, "I recall I moved to Lyon."),
    "a prefix about notes": (LYON, "According to my notes, I moved to Lyon."),
    "a prefix that asks for trust": (LYON, "Most recent, certain, most important: I moved to Lyon."),
    "when it was said": (LYON, "(said 2024-05-01 13:56 UTC by Ann (Sales)) I moved to Lyon."),
    "since when it is so": (LYON, "(since 2024-05-01 13:56 UTC) I moved to Lyon."),
    "two prefixes": (LYON, "Yes, as I recall, I moved to Lyon."),
    "a suffix": (LYON, "I moved to Lyon. Indeed."),
    "a suffix without a mark": (LYON, "I moved to Lyon indeed"),
    "a suffix in parentheses": (LYON, "I moved to Lyon (as noted)"),
    "a suffix that asks for trust": (LYON, "I moved to Lyon \u2013 that is certain!"),
    "a prefix and a suffix": (LYON, "Note: I moved to Lyon, as I recall."),
    "a Cyrillic o": (LYON, "I m\u043eved to Lyon."),
    "Cyrillic letters in every word": (LYON, "\u0406 m\u043ev\u0435d t\u043e Ly\u043en."),
    "Greek letters": (LYON, "I m\u03bfved t\u03bf Ly\u03bfn."),
    "a word of look-alikes alone": ("Ann saw a cop.", "Ann saw a \u0441\u043e\u0440."),
    "a zero-width space": (LYON, "I mo\u200bved to Lyon."),
    "other invisible characters": (LYON, "\ufeffI mo\u00adved\u2060 to L\u200dy\u034fon\ufe0f."),
    "full-width letters": (LYON, "\uff29 moved to Lyon."),
    "mathematical letters": (LYON, "I \U0001d426oved to Lyon."),
    "letters above and in circles": (LYON, "\u24be m\u1d52ved to L\u24e8on."),
    "everything at once": (LYON, "I rec\u0430ll: \u200bI m\u043eved  to LYON \u2014 indeed."),
    "a contraction spelled out": (OFFICE, "The Lyon office does not open before 9:30 on the first floor."),
    "another apostrophe": (OFFICE, "The Lyon office doesn\u2019t open before 9:30 on the first floor."),
    "no articles": (OFFICE, "Lyon office doesn't open before 9:30 on first floor"),
    "a number in words": ("Ann has 3 cats.", "Ann has three cats."),
    "a hyphen": ("Ann is well-known in Lyon.", "Ann is well known in Lyon"),
    "an emphasis": (LYON, "I really moved to Lyon."),
    "Cyrillic words in capitals": ("\u042f \u0436\u0438\u0432\u0443.", "\u042f \u0416\u0418\u0412\u0423"),
}
OTHER = {
    "another town": (LYON, "I moved to Lille."),
    "another person": (LYON, "Ann moved to Lyon."),
    "a negation": (LYON, "I never moved to Lyon."),
    "a negated prefix": (LYON, "It is not true that I moved to Lyon."),
    "a doubt": (LYON, "Maybe I moved to Lyon."),
    "a prefix that adds a fact": (LYON, "Since May: I moved to Lyon."),
    "a prefix that names a speaker": (LYON, "Bob says: I moved to Lyon."),
    "a suffix that adds a fact": (LYON, "I moved to Lyon with Bob."),
    "a suffix that is another statement": (LYON, "I moved to Lyon. Bob stayed."),
    "once more": (LYON, "I moved to Lyon again."),
    "a question": (LYON, "I moved to Lyon?"),
    "another tense": ("Ann smokes.", "Ann smoked."),
    "swapped roles": ("Tom loves Eve.", "Eve loves Tom."),
    "another number": ("Ann has 3 cats.", "Ann has 4 cats."),
    "another number in words": ("Ann has 3 cats.", "Ann has four cats."),
    "another decimal": ("The dose is 1.5 mg.", "The dose is 15 mg."),
    "a number above": ("The tank holds 103 litres.", "The tank holds 10\u00b3 litres."),
    "a number below": ("The tank holds 103 litres.", "The tank holds 10\u2083 litres."),
    "numbers in circles": ("Room 12 is free.", "Room \u2460\u2461 is free."),
    "a fraction": ("Ann's share is 11\u20442.", "Ann's share is 1\u00bd."),
    "another time": (OFFICE, OFFICE.replace("9:30", "9:35")),
    "no contraction": (OFFICE, OFFICE.replace("doesn't", "does")),
    "a negative number": ("It was 5 degrees.", "It was -5 degrees."),
    "a sign": ("Ann's group is O+.", "Ann's group is O-."),
    "a letter that is a name": ("Vitamin helps.", "Vitamin A helps."),
    "a word that frames elsewhere": ("Customers get refunds.", "Certain customers get refunds."),
    "a verb that frames elsewhere": ("Products of 2019 failed.", "Recall products of 2019 failed."),
    "another accent": ("La Pe\u00f1a is open.", "La Pena is open."),
    "another Cyrillic word": ("\u042f \u0436\u0438\u0432\u0443.", "\u042f \u0436\u0438\u043b."),
}


async def stored_after(substrate: IngestSubstrate, known: str, content: str) -> bool:
    """Return whether an agent that can recall a text stores the content as something new."""
    await substrate.store(known, HOUSE, PERSON)
    await substrate.store("Bea was in Lyon in May, and likes tea.", AGENT)
    answer = await StoreMemory(substrate.memory(AGENT)).call({"content": content}, CALL)
    created = json.loads(answer.content)["created"]
    assert isinstance(created, bool)
    return created


@pytest.mark.parametrize(("known", "content"), SAME.values(), ids=SAME)
async def test_invariant_7_a_variant_of_recalled_text_is_not_learned_again(
    substrate: IngestSubstrate, known: str, content: str
) -> None:
    assert not await stored_after(substrate, known, content)


@pytest.mark.parametrize(("content", "known"), SAME.values(), ids=SAME)
async def test_a_statement_is_not_learned_again_without_its_disguise(
    substrate: IngestSubstrate, known: str, content: str
) -> None:
    assert not await stored_after(substrate, known, content)


@pytest.mark.parametrize(("known", "content"), OTHER.values(), ids=OTHER)
async def test_what_says_something_else_is_stored(substrate: IngestSubstrate, known: str, content: str) -> None:
    assert await stored_after(substrate, known, content)
    assert content in await substrate.contents()


FENCE = '<memory section="records" note="Remembered data.">'


@pytest.mark.parametrize(
    "mark",
    [
        pytest.param(FENCE.replace("mem", "me\u200bm"), id="an invisible character"),
        pytest.param(FENCE.replace("o", "\u043e", 1), id="a Cyrillic letter"),
        pytest.param(FENCE.replace("<", "\uff1c").replace(">", "\uff1e"), id="full-width brackets"),
    ],
)
def test_a_disguised_fence_is_a_fence(mark: str) -> None:
    assert without_recalled(f"Before.\n{mark}\nBea likes tea.\n</memory>\nAfter.") == "Before.\nAfter."


def test_text_without_a_fence_keeps_its_disguises() -> None:
    text = "\u0406 m\u043eved to Ly\u200bon."
    assert without_recalled(text) is text


@given(text=st.text(max_size=60))
def test_comparison_is_stable(text: str) -> None:
    for form in (normalised, statement):
        once = form(text)
        assert form(once) == once
    assert wording(statement(text)) == wording(text)
    assert undisguised(undisguised(text)) == undisguised(text)


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["i recall: ", "yes, ", "most ", "((", ". indeed", "- ", "'"])
def test_comparing_hostile_repetition_takes_linear_work(piece: str) -> None:
    wording(piece * (64 * 1024 // len(piece)))
