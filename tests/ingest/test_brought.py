"""What a text says that a message brings to be worked on, or a role that it plays, is not what its sender says."""

from __future__ import annotations

import pytest

from retain.ingest.extraction import SourceMessage
from retain.ingest.extractors.rule_extractor import RuleExtractor, facts_of

BROUGHT: tuple[str, ...] = (
    "Translate into German: I live in Paris.",
    "Translate I live in Paris to Spanish",
    "Proofread this: I work at Google and I love Mondays.",
    "Rewrite this email for me: Hi Tom, I live in Oslo and I'm allergic to nuts.",
    "Here is my essay: I was born in Kenya. I love running.",
    "Correct the grammar of the following text.\n\nMy name is Ahmed. I live in Cairo. I work at Orange.",
    "Can you make this sound more formal? I love your product and I live in Oslo.",
    "What is wrong with this sentence: I live in Rome.",
    "How do I say this sentence in French? I love jazz.",
    "Is this sentence correct? I live in Rome.",
    "Reply to this review: I love the Beatles",
    "Summarize the article below\nI live in Rome.",
    "Continue the story: My name is Bo and I live in Mars.",
    "Essay: I grew up in Lima. I love tea.",
    "\u00dcbersetze bitte: I love Paris",
    "\u7ffb\u8bd1\uff1aI love Paris",
    "Here's our style guide:\nAlways use metric units.\nI love tea.",
    # The text comes first.
    "I live in Rome and I love tea. Can you translate that to Dutch?",
    "My name is Tom. I work at Acme.\n\nPlease fix the grammar.",
    # A new text.
    "Write a poem that begins with: I love the sea",
    "Draft a message that says I live in Oslo.",
    # A play.
    "Act as a nurse. I am a patient and I'm allergic to penicillin.",
    "You are a travel agent and I'm a customer: I live in Rome.",
    "Pretend to be a pirate. I live in Tortuga.",
    "Let's role-play. I work at Shell.",
)
OWN: tuple[tuple[str, str], ...] = (
    ("I live in Oslo. Translate this: Bonjour, je suis Marie.", "Bea lives in Oslo"),
    ("I live in Oslo. Pretend to be a pirate. I live in Tortuga.", "Bea lives in Oslo"),
    ("Write a cover letter for me. I live in Boston.", "Bea lives in Boston"),
    ("Can you correct my address? I live in Oslo.", "Bea lives in Oslo"),
    ("I need help with my essay. I work at Acme.", "Bea works at Acme"),
    ("You are a lifesaver! I live in Oslo.", "Bea lives in Oslo"),
    ("Check the weather please, I live in Oslo.", "Bea lives in Oslo"),
    ("Can you review my code? I use Django.", "Bea uses Django"),
    ("Please translate this into French every time. I live in Lyon.", "Bea lives in Lyon"),
    ("Here are some facts about me:\nI live in Oslo.", "Bea lives in Oslo"),
    ("I'm writing a story about Rome. I live in Oslo.", "Bea lives in Oslo"),
)


@pytest.mark.parametrize("text", BROUGHT)
def test_a_text_that_is_brought_and_a_role_that_is_played_yield_no_facts(text: str) -> None:
    assert _facts(text) == []


@pytest.mark.parametrize(("text", "expected"), OWN, ids=[text for text, _ in OWN])
def test_what_somebody_says_of_themselves_next_to_a_request_is_a_fact(text: str, expected: str) -> None:
    assert _facts(text) == [expected]


async def test_a_text_that_was_announced_is_the_next_message_of_who_announced_it() -> None:
    talk = [
        ("Bea", "Hi there! Can you proofread my essay?"),
        ("assistant", "Sure. I live in a server."),
        ("Tom", "I live in Oslo."),
        ("Bea", "I was born in Kenya. I love running."),
        ("Bea", "Thanks! I live in Rome."),
        ("Bea", "I live in Paris, and I have lived there for years. Translate this: Bonjour."),
        ("Bea", "I love tea."),
    ]
    messages = [SourceMessage(str(number), speaker, text) for number, (speaker, text) in enumerate(talk)]
    found = [fact.content for fact in await RuleExtractor().extract(messages)]
    assert found == ["Tom lives in Oslo", "Bea lives in Rome", "Bea lives in Paris", "Bea likes tea"]


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece", ["please ", "translate my ", "the text ", "can you ", "write ", "you are a ", "how this "]
)
def test_a_long_request_takes_linear_work(piece: str) -> None:
    _facts(piece * (128 * 1024 // len(piece)))


def _facts(text: str) -> list[str]:
    return [fact.content for fact in facts_of(SourceMessage("m", "Bea", text))]
