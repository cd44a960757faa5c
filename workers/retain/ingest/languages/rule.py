"""A rule of extraction: what it looks for, and the fact that it makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from retain.memory.records.record import Kind

Reading = Literal["plain", "thing"]
"""How the object of a fact is read: unchanged; as a thing, cut where something else begins."""
Denial = Literal["refused", "required", "either"]
"""Whether a rule skips, requires or ignores a denial in a clause."""
_KINDS: Mapping[str, Kind] = {"task": "task", "plans": "event", "instruction": "instruction"}
"""The kinds of relations that are not facts, whatever the language."""
_LASTING = frozenset(
    {
        "age", "anniversary", "avoids", "birth_year", "birthday", "birthday_of_{who}", "born_in", "comes_from", "grew_up_in",
    }
)  # fmt: skip
"""Relations that cannot end, as a birthplace."""


@dataclass(frozen=True, slots=True)
class ExtractionRule:
    """One rule.

    pattern: tried at the start of a clause; has the group `object`, those that `predicate` and `phrase` name, and the
    vocabulary's parts as `<PART>`. predicate: of the fact; `predicate_of` adds the object unless `functional`.
    functional: the predicate has one object at a time; None looks it up in `extraction.FUNCTIONAL`. phrase: the fact as
    a sentence. confidence: below 1. whole: read sentences instead of clauses. anywhere: try the pattern at every
    position. verbs: one of them is before what the pattern reads, as the language's `stating` has them; empty, where the
    pattern says all.
    """

    name: str
    pattern: str
    predicate: str
    phrase: str
    confidence: float
    functional: bool | None = None
    reading: Reading = "plain"
    denial: Denial = "refused"
    whole: bool = False
    anywhere: bool = False
    verbs: str = ""

    @property
    def kind(self) -> Kind:
        """The kind of what it finds, by its relation; what is not a fact is read as something to do."""
        return _KINDS.get(self.predicate, "fact")

    @property
    def can_end(self) -> bool:
        """Whether what the rule finds can end or be denied."""
        stays = self.predicate in _LASTING or self.whole or self.anywhere
        return self.kind == "fact" and self.denial == "refused" and not stays

    def may_read(self, text: str) -> bool:
        """Return whether one of its verbs is in a text in small letters: most rules need not be tried, nor compiled."""
        return not self.verbs or any(verb in text for verb in self.verbs.split("|"))
