"""Passages of long records in other languages."""

from __future__ import annotations

from retain.memory.recall.excerpt import excerpt


def test_words_have_the_stems_of_the_language_of_the_text() -> None:
    """English stems do not take "Häuser" for "Haus"."""
    filler = " ".join(f"Der Absatz {number} beschreibt nur das Gehäuse und die Farbe." for number in range(100))
    answer = "Die alten Häuser am Hafen wurden verkauft."
    assert answer in excerpt(f"{filler} {answer} {filler}", "Was ist mit dem Haus geschehen?", 1_000)
