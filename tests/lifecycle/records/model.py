"""What a tenant remembers, as a plain model: written from docs/memory.md and docs/lifecycle.md, not from the code.

A place is a scope by name. The model knows no events, indexes or transactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.memory.semantic.stated import Model, Statements

PARENTS = {
    "tenant": None,
    "house": "tenant",
    "agent": "house",
    "triage": "tenant",
    "ann": "agent",
    "bob": "agent",
    "ann_everywhere": "tenant",
    "desk": "agent",
}
"""The places of a tenant, each with the one around it: `agent` is in the house, `triage` is not."""
USERS = {"ann": ("ann", "ann_everywhere"), "bob": ("bob",)}
"""The places of each user."""
FACT_PARTS = ("subject", "predicate", "object")


def visible(*starts: str) -> set[str]:
    """Return the places that are visible from these: themselves and what is around them."""
    found: set[str] = set()
    for start in starts:
        place: str | None = start
        while place is not None:
            found.add(place)
            place = PARENTS[place]
    return found


def below(place: str) -> set[str]:
    """Return the place and those inside it."""
    return {one for one in PARENTS if place in visible(one)}


Position = tuple[str, int]
"""A conversation, and the number of the message."""


@dataclass
class Remembered:
    """A record.

    past: every text that its events have, for an erasure. forgotten: its earlier past was erased. fresh: not compared with
    others yet.
    """

    id: str
    place: str
    content: str
    kind: str
    recorded: int
    parts: dict[str, str | None]
    metadata: dict[str, str]
    persons: bool
    speaker: str | None = None
    position: Position | None = None
    past: list[dict[str, Any]] = field(default_factory=list)
    fresh: bool = True
    forgotten: bool = False

    @property
    def about(self) -> tuple[str | None, ...]:
        """What it competes for; a record without subject and predicate competes with no other."""
        subject, predicate = self.parts["subject"], self.parts["predicate"]
        return ("alone", self.id) if None in (subject, predicate) else (self.place, subject, predicate)

    @property
    def texts(self) -> dict[str, Any]:
        """What an erasure by mention or subject reads of it."""
        return {
            "content": self.content,
            "metadata": dict(self.metadata),
            **self.parts,
            "speaker": self.speaker,
            "conversation": None if self.position is None else self.position[0],
            "place": self.place,
        }

    def note(self) -> None:
        """Take its present texts into its past."""
        self.past.append(self.texts)


@dataclass
class Given:
    """What a caller says. since: None for now."""

    content: str
    kind: str = "fact"
    parts: Mapping[str, str | None] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    since: int | None = None
    expires: int | None = None
    person: bool = False


@dataclass
class Memory:
    """What one tenant remembers.

    graves: the texts of deleted records, whose events stay. erased: ids of what was erased. origins: the ids that records
    of another tenant have here.
    """

    records: dict[str, Remembered] = field(default_factory=dict)
    facts: Model = field(default_factory=Model)
    graves: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    erased: set[str] = field(default_factory=set)
    origins: dict[str, str] = field(default_factory=dict)

    def holder(self, place: str, content: str, position: Position | None = None) -> Remembered | None:
        """Return the record of a place that has this content."""
        for one in self.records.values():
            if (one.place, one.content, one.position) == (place, content, position):
                return one
        return None

    def is_valid(self, record_id: str, at: int) -> bool:
        """Return whether a record is valid at an instant."""
        return self.facts.valid(self.facts.stated[record_id].about, at) == record_id

    def valid(self, places: Iterable[str], at: int) -> Iterator[Remembered]:
        """Yield the records of these places that are valid at an instant."""
        within = set(places)
        return (one for one in self.records.values() if one.place in within and self.is_valid(one.id, at))

    def tell(
        self,
        record_id: str,
        place: str,
        given: Given,
        now: int,
        position: Position | None = None,
        speaker: str | None = None,
    ) -> None:
        """Remember a statement. record_id: the id that it got, or the one that the content has."""
        begins = now if given.since is None else given.since
        one = self.holder(place, given.content, position)
        if one is None:
            parts = {name: given.parts.get(name) for name in FACT_PARTS}
            one = Remembered(
                record_id,
                place,
                given.content,
                given.kind,
                now,
                parts,
                dict(given.metadata),
                given.person,
                speaker,
                position,
            )
            one.note()
            self.records[record_id] = one
            self.facts.stated[record_id] = Statements(record_id, one.about, {begins: None}, given.expires)
            return
        assert one.id == record_id, "a content that the place has was stored again"
        facts = self.facts.stated[record_id]
        if not given.person and self.facts.is_shut(record_id):
            return
        guarded, before = one.persons and not given.person, self._compared(one)
        if not guarded:
            self._complete(one, given)
        later = None not in (facts.expires, given.expires) and not facts.is_gone(now) and given.expires > facts.expires  # type: ignore[operator]
        added = one.texts != one.past[-1] or later
        lasts = facts.expires if guarded and not facts.is_gone(now) else given.expires
        if not (guarded and begins < min(facts.since)):  # no rule lets begin earlier what a person wrote
            self.facts.tell(record_id, begins, lasts, now, timed=given.since is not None, person=given.person)
        one.persons = one.persons or (given.person and added)
        one.fresh = one.fresh or self._compared(one) != before
        if one.texts != one.past[-1]:
            one.note()

    def _complete(self, one: Remembered, given: Given) -> None:
        """Add what the record lacks, and replace nothing."""
        one.metadata = {**given.metadata, **one.metadata}
        wanted = {name: given.parts.get(name) for name in FACT_PARTS}
        if all(None in (one.parts[name], wanted[name]) or one.parts[name] == wanted[name] for name in FACT_PARTS):
            one.parts = {name: wanted[name] if one.parts[name] is None else one.parts[name] for name in FACT_PARTS}
        self.facts.stated[one.id].about = one.about

    def _compared(self, one: Remembered) -> tuple[object, ...]:
        """Return what two records are compared by besides the text."""
        return one.kind, dict(one.metadata), dict(one.parts), self.facts.stated[one.id].expires

    def learn(self, record_id: str, place: str, given: Given, now: int) -> None:
        """Learn a fact from a conversation, unless it is known to be valid then, or a person wanted before that it ended."""
        at = now if given.since is None else given.since
        same = [one for one in self.records.values() if one.place == place and one.parts == dict(given.parts)]
        for one in same:
            if self.is_valid(one.id, at):  # in its own words, unless a person wrote them
                if not one.persons:
                    self.tell(one.id, place, replace(given, content=one.content), now)
                return
        if any(self.facts.is_shut(one.id) and self._ended_before(self.facts.stated[one.id], at) for one in same):
            return
        self.tell(record_id, place, given, now)

    def take_in(
        self, other: Memory, names: Mapping[tuple[str, str, Position | None], str], *, unasked: bool, own: bool
    ) -> None:
        """Import what a tenant remembered. names: the ids of the records that are here now. own: it was this tenant.

        unasked: without asking for what was erased here.
        """
        for old in other.records.values():
            record_id = (
                old.id if own else self.origins.get(old.id, names.get((old.place, old.content, old.position), ""))
            )
            if record_id in self.records or record_id in self.graves or (unasked and record_id in self.erased):
                continue
            if self.holder(old.place, old.content, old.position) is not None:
                continue
            assert record_id, f"{old.content!r} in {old.place} was not imported"
            facts = other.facts.stated[old.id]
            self.origins[old.id] = record_id
            one = replace(old, id=record_id, parts=dict(old.parts), past=list(old.past), fresh=True)
            self.records[record_id] = one
            self.facts.stated[record_id] = replace(facts, order=record_id, about=one.about, since=dict(facts.since))
        for old_id, past in other.graves.items():
            grave = old_id if own else f"copy of {old_id}"
            if grave not in self.records and not (unasked and grave in self.erased):
                self.graves.setdefault(grave, past)

    def emptied(self) -> Memory:
        """Return the memory after its tenant was erased."""
        gone = self.erased | self.records.keys() | self.graves.keys()
        return Memory(erased=gone, origins=self.origins)

    def edit(self, record_id: str, changes: Mapping[str, Any], *, person: bool) -> None:
        """Change fields. Nothing else follows from it than from having wanted it so at once."""
        one = self.records[record_id]
        for name, value in changes.items():
            if name in FACT_PARTS:
                one.parts[name] = value
            elif name == "expires_at_ms":
                self.facts.stated[record_id].expires = value
            else:
                setattr(one, name, dict(value) if name == "metadata" else value)
        self.facts.stated[record_id].about = one.about
        one.persons = one.persons or person
        one.fresh = True
        one.note()

    def close(self, record_id: str, at: int, *, person: bool) -> None:
        """End a record's validity."""
        facts = self.facts.stated[record_id]
        self.facts.end(facts, at)
        facts.closed_by_person = person

    def delete(self, record_id: str) -> None:
        """Take a record back: nothing that it replaced stays replaced. Its events keep the texts."""
        self.graves[record_id] = self.records[record_id].past
        self._drop(record_id)

    def consolidate(self, now: int) -> None:
        """Do what rules may do overnight."""
        for one in list(self.records.values()):
            facts = self.facts.stated[one.id]
            if not facts.is_gone(now):
                continue
            if one.kind != "task":
                self.delete(one.id)
            elif facts.expires is not None and self._lasts(one.id, facts):
                self.close(one.id, facts.expires, person=False)
        groups: dict[str, list[Remembered]] = {}
        for one in self.records.values():
            if one.position is None and self.is_valid(one.id, now):
                groups.setdefault(self._likeness(one), []).append(one)
        for group in groups.values():
            if any(one.fresh for one in group):
                _, *others = sorted(
                    group, key=lambda one: (not one.persons, one.recorded, one.id)
                )  # the first one stays
                for other in others:
                    if not other.persons:
                        self.close(other.id, now, person=False)
        for one in self.records.values():
            one.fresh = False

    def _lasts(self, record_id: str, facts: Statements) -> bool:
        """Return whether only its expiry ended it."""
        assert facts.expires is not None
        return self.is_valid(record_id, facts.expires - 1) or min(facts.since) >= facts.expires

    @staticmethod
    def _ended_before(facts: Statements, at: int) -> bool:
        end = max(facts.since.items())[1]
        return end is not None and end <= at

    def _likeness(self, one: Remembered) -> str:
        begins = min(self.facts.stated[one.id].since) if one.kind == "event" else None
        expires = self.facts.stated[one.id].expires
        words = " ".join(one.content.split()).rstrip(".! ")
        return repr((one.place, one.kind, one.parts, sorted(one.metadata.items()), expires, begins, words))

    def erase_subject(self, subject: str) -> set[str]:
        """Erase what is or was about a subject; return the ids that are gone."""
        return self._erase(lambda texts: texts.get("subject") == subject)

    def erase_mention(self, term: str) -> set[str]:
        """Erase what names a word; return the ids that are gone."""
        return self._erase(lambda texts: names(term, texts))

    def erase_user(self, user: str) -> set[str]:
        """Erase what is in the places of a user; return the ids that are gone."""
        gone = {one.id for one in self.records.values() if one.place in USERS[user]}
        for record_id in gone:
            self._drop(record_id)
        buried = {name for name, past in self.graves.items() if past[0]["place"] in USERS[user]}
        for name in buried:
            del self.graves[name]
        self.erased |= gone | buried
        return gone | buried

    def _erase(self, named: Any) -> set[str]:
        gone = {name for name, past in self.graves.items() if any(map(named, past))}
        for name in gone:
            del self.graves[name]
        for one in list(self.records.values()):
            if named(one.texts):
                gone.add(one.id)
                self._drop(one.id)
            elif any(map(named, one.past)):  # it stays, its past does not
                one.past, one.forgotten = [one.texts], True
                self.facts.stated[one.id].closed_by_person = False
        self.erased |= gone
        return gone

    def _drop(self, record_id: str) -> None:
        del self.records[record_id], self.facts.stated[record_id]

    def has_word(self, term: str) -> bool:
        """Return whether a text, also one of the past, names a word."""
        pasts = [*(one.past for one in self.records.values()), *self.graves.values()]
        return any(names(term, texts) for past in pasts for texts in past)


def names(term: str, texts: object) -> bool:
    """Return whether a text, or one within, has a word."""
    if isinstance(texts, dict):
        return any(names(term, one) for one in texts.values())
    return isinstance(texts, str) and term.lower() in texts.lower().replace(".", " ").replace(":", " ").split()
