"""One rule of extraction: what it looks for, and the fact that it makes of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal

from retain.ingest.rules.vocabulary import PARTS
from retain.memory.records.record import Kind

Reading = Literal["plain", "thing", "deed"]
"""How an object is read: as it was found; as a thing, cut where something else begins; as something to do."""
Denial = Literal["refused", "required", "either"]
"""Whether a rule reads clauses that deny something."""


@dataclass(frozen=True, slots=True)
class ExtractionRule:
    """One rule.

    pattern: tried at the start of a clause; holds the group `object`, others that `predicate` and `phrase` name, and
    the vocabulary's parts as `<PART>`. predicate: of the fact; with its object unless it holds of one thing at a time,
    which `functional` says, None asking `extraction.FUNCTIONAL`. phrase: the fact as a sentence. confidence: below 1.
    whole: read sentences instead of clauses. anywhere: the pattern may begin inside.
    """

    name: str
    pattern: str
    predicate: str
    phrase: str
    confidence: float
    kind: Kind = "fact"
    functional: bool | None = None
    reading: Reading = "plain"
    denial: Denial = "refused"
    whole: bool = False
    anywhere: bool = False


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Return a rule's pattern with its parts filled in."""
    return re.compile(re.sub(r"<([A-Z]+)>", lambda place: PARTS[place[1]], pattern))
