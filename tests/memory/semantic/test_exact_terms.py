"""Addresses, ids and quotations: a line about the wrong one never ranks above a line about the right one."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.memory.semantic.indexes import SilentIndex
from tests.memory.semantic.substrate import Substrate


@dataclass(frozen=True)
class Case:
    """Lines about the right one and the wrong one, stored in any order."""

    query: str
    right: tuple[str, ...]
    wrong: tuple[str, ...]


CASES = {
    "address, the wrong line is short": Case(
        "refund history for sara@example.com",
        (
            "On 3 May the customer sara@example.com asked for her money back because the lamp of order AB-1001 arrived "
            "broken; support checked the photos and the payment was returned to her card two days later.",
        ),
        ("Refund declined for bob@example.com", "Refund history of bob@example.com", "Refund history: none."),
    ),
    "address, several right lines": Case(
        "Has sara@example.com had refunds?",
        ("sara@example.com: late parcel, voucher sent.", "Voucher of sara@example.com used."),
        ("Refunds for bob@example.com.", "bob@example.com had refunds.", "sara@example.org had refunds."),
    ),
    "address with dots and a plus": Case(
        "refunds of sara.lee+shop@mail.example.com",
        ("A complaint by sara.lee+shop@mail.example.com about a lamp.",),
        ("Refunds of sara.lee@mail.example.com", "Refunds of sara@shop.example.com", "Refunds of lee+shop@example.com"),
    ),
    "order number": Case(
        "What happened to order AB-1002?",
        ("The parcel with AB-1002 was left at a neighbour's door, who then moved to another town.",),
        ("What happened to order AB-1001?", "Order AB-1003 happened.", "Order 1002-AB happened to happen."),
    ),
    "order number of digits": Case(
        "What happened to order 48213?",
        ("The parcel with 48213 was left at a neighbour's door, who then moved to another town.",),
        ("What happened to order 48214?", "Order 48212 happened.", "Order 4821 happened to happen."),
    ),
    "short number after its noun": Case(
        "What is wrong with invoice no. 311?",
        ("For 311 the address of the buyer is missing, so it went back to the accountant in spring.",),
        ("What is wrong with invoice no. 312?", "Invoice no. 31 is wrong."),
    ),
    "ticket with a sign": Case(
        "status of ticket #4711",
        ("Nobody answered #4711 for a week, so it was escalated to the second level on Tuesday.",),
        ("Status of ticket #4712: open", "The status of the ticket is #4713."),
    ),
    "contact with colons": Case(
        "What does contact:hubspot_id:A123456 respond to?",
        ("contact:hubspot_id:A123456 answered the mail about storage with two questions.",),
        ("contact:hubspot_id:B654321 responds to direct framing.", "What does a contact respond to?"),
    ),
    "serial number in lower case": Case(
        "Which fault has engine mx200b?",
        ("The mx200b lost oil at the second seal when it ran above its rated speed for an hour.",),
        ("Which fault has engine mx201b?", "Engine mx300b has a fault, a fault of the engine."),
    ),
}


@pytest.mark.parametrize("stored", ["right first", "wrong first"])
@pytest.mark.parametrize("index", ["index", "silent index"])
@pytest.mark.parametrize("name", CASES)
async def test_a_line_about_the_wrong_one_never_ranks_above_the_right_one(
    substrate: Substrate, name: str, index: str, stored: str
) -> None:
    case = CASES[name]
    lines = (*case.right, *case.wrong) if stored == "right first" else (*case.wrong, *case.right)
    if index == "silent index":
        substrate.index = SilentIndex(substrate.vectors)
    for line in lines:
        await substrate.store(line)
    substrate.clock.advance(3_600_000)
    found = await substrate.found(case.query, top_k=len(lines))
    assert set(found[: len(case.right)]) == set(case.right)


async def test_a_term_in_another_case_is_the_same_term(substrate: Substrate) -> None:
    await substrate.store("Refund declined for bob@example.com")
    await substrate.store("A long line about lamps and other things which Sara@Example.COM ordered in spring.")
    hits = await substrate.hits("refund for SARA@example.com")
    assert hits[0].record.content.startswith("A long line")
    assert [hit.components["exact"] > 0 for hit in hits] == [True, False]


async def test_an_address_is_matched_as_a_phrase_and_not_as_its_words(substrate: Substrate) -> None:
    await substrate.store("The com of example is what sara wrote at length.")
    [hit] = await substrate.hits("sara@example.com")
    assert hit.components["exact"] == 0.0
    assert hit.components["words"] > 0.0


async def test_each_of_two_terms_counts(substrate: Substrate) -> None:
    for line in ("AB-1001 only.", "CD-2002 only.", "AB-1001 and CD-2002.", "Neither."):
        await substrate.store(line)
    exact = {hit.record.content: hit.components["exact"] for hit in await substrate.hits("AB-1001 or CD-2002")}
    assert exact["AB-1001 and CD-2002."] == pytest.approx(2 * exact["AB-1001 only."])
    assert exact["AB-1001 only."] == exact["CD-2002 only."] > exact["Neither."] == 0.0


async def test_a_quotation_counts_less_than_an_address(substrate: Substrate) -> None:
    await substrate.store("He is just fine.")
    await substrate.store("Mail of sara@example.com.")
    query = 'Is sara@example.com "just fine" now?'
    exact = {hit.record.content: hit.components["exact"] for hit in await substrate.hits(query)}
    assert exact["Mail of sara@example.com."] > 5 * exact["He is just fine."] > 0.0
