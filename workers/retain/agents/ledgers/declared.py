"""The decision that a run's answer declares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from retain.json_text import read_json

_FIRST_WORD = re.compile(r"[^\w{]*(\w[\w-]*)")
_CONFIDENCE = re.compile(r"\bconfidence\b(?:\s+of|\s+is)?[\s:=]*(\d+(?:\.\d+)?)\s?(%)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Declared:
    """A decision. label: as the agent's definition spells it. confidence: in [0, 1], None if the answer names none."""

    label: str
    confidence: float | None = None


def declared_decision(answer: str, labels: Sequence[str]) -> Declared | None:
    """Return the decision that an answer declares, None if it declares none of the labels.

    The answer is a JSON object with `decision`, and perhaps `confidence`; or a text whose first word is the label, and that
    may say `confidence 0.9` or `confidence: 90%`. Case does not matter.
    """
    known = {label.casefold(): label for label in labels}
    try:
        content = read_json(answer)
    except ValueError:
        content = None
    if isinstance(content, list):
        return None
    if isinstance(content, dict):
        named = content.get("decision")
        label = known.get(named.casefold()) if isinstance(named, str) else None
        return None if label is None else Declared(label, _share(content.get("confidence")))
    word = _FIRST_WORD.match(answer)
    label = None if word is None else known.get(word[1].casefold())
    if label is None:
        return None
    found = _CONFIDENCE.search(answer)
    return Declared(label, None if found is None else _share(float(found[1]) / (100 if found[2] else 1)))


def _share(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        return None
    return float(value)
