"""The steps of an import: what it does to one record each, and which of them it leaves out as duplicates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.memory.earlier_texts import EarlierText, earlier_of
from retain.memory.records.events import LearningEvent
from retain.memory.records.record import Record


@dataclass(frozen=True, slots=True)
class ImportStep:
    """The change of one record. before, after: None when it does not exist then. events: those the tenant lacks.

    last_event_id: of all its events, with those that the tenant has.
    """

    before: Record | None
    after: Record | None
    events: Sequence[LearningEvent]
    last_event_id: str

    @property
    def earlier_texts(self) -> list[EarlierText]:
        """The texts that a new record had before its present one. Those of a known record are added by settling it."""
        return [] if self.before is not None or self.after is None else earlier_of(self.after, self.events)

    @property
    def subject(self) -> Record | None:
        """The record whose vectors the index is owed; None when it never existed here."""
        return self.after or self.before

    @property
    def keeps_content(self) -> bool:
        """Whether the record has the same content before and after."""
        return self.before is not None and self.after is not None and content_of(self.before) == content_of(self.after)

    def then(self, later: ImportStep) -> ImportStep:
        """Return both steps of one record as one."""
        return ImportStep(self.before, later.after, [*self.events, *later.events], later.last_event_id)


def duplicates_of(steps: Mapping[str, ImportStep], holders: Mapping[tuple[str, str], str]) -> set[str]:
    """Return the records whose steps are left out, because another record has the content that they lead to.

    A record that the import leaves as it is keeps its content, also one whose own step is left out; of those that come to
    one content the first does. holders: the records that now have the contents to which steps lead.
    """
    left_out: set[str] = set()
    while True:
        held = {content: name for content, name in holders.items() if name not in steps}
        for name, step in steps.items():
            if step.before is not None and (name in left_out or step.keeps_content):
                held[content_of(step.before)] = name
        more = set()
        for name, step in steps.items():
            if name in left_out or step.after is None:
                continue
            if held.setdefault(content_of(step.after), name) != name:
                more.add(name)
        if not more:
            return left_out
        left_out |= more


def content_of(record: Record) -> tuple[str, str]:
    """Return what no two records of a tenant have in common: scope and content hash."""
    return record.scope_id, record.content_hash
