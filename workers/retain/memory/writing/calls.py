"""What one caller asks to store, and the result. Both travel as JSON between Durable Objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NotRequired, Protocol, TypedDict, cast

from retain.identifiers import id_after, new_id
from retain.json_text import Json, JsonObject
from retain.memory.records.record import EDITABLE, NewRecord, Record, RecordSource, Utterance
from retain.memory.scope import Scope
from retain.ports import SqlValue, Statement

_NO_RUN = "~"
"""Sorts after every id."""


class _ShownResult(TypedDict):
    id: str
    created: bool
    merged: list[str]
    kept: list[str]
    degraded: NotRequired[list[Literal["vectors"]]]


class _ShownCall(TypedDict):
    scope: dict[str, Any]
    news: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    at_ms: int
    acting: str | None
    facts: list[dict[str, Any]]
    also: list[tuple[str, list[SqlValue]]]
    compared: NotRequired[list[str]]


@dataclass(frozen=True, slots=True)
class StoreResult:
    """What `store` did. created: False when the scope had equal content already.

    merged, kept: then, the outcome for the given fields, as `retain.memory.records.retelling.Retold`.
    degraded: `vectors` when the vector index was away and is owed the record's vectors.
    """

    id: str
    created: bool
    merged: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    degraded: tuple[Literal["vectors"], ...] = ()

    def to_json(self) -> JsonObject:
        """Return the result as the answers of HTTP and of tools have it: with `degraded` only if it is."""
        result: dict[str, Json] = {"id": self.id, "created": self.created}
        result |= {"merged": list(self.merged), "kept": list(self.kept)}
        return result if not self.degraded else result | {"degraded": list(self.degraded)}

    @classmethod
    def from_json(cls, shown: JsonObject) -> StoreResult:
        """Return the result that `to_json` showed."""
        result = cast("_ShownResult", shown)
        degraded = tuple(result.get("degraded", ()))
        return cls(result["id"], result["created"], tuple(result["merged"]), tuple(result["kept"]), degraded)


@dataclass(frozen=True, slots=True)
class Stated:
    """A content as a new record. since_ms: when it became valid as the caller said, None if not said."""

    record: Record
    since_ms: int | None


@dataclass(frozen=True, slots=True)
class LearnedFact:
    """A fact that somebody stated, to be learned (`retain.memory.writing.learning`), not stored as a caller says it.

    new: with subject, predicate and object, valid from when it was stated. opposites: predicates of facts about the same
    object that cannot be valid together with it. denied: it only closes those, and is not stored. stated_by: which content
    of the call states it, counted from 0: its source names that one's record. None: the source is complete.
    """

    new: NewRecord
    source: RecordSource
    opposites: tuple[str, ...] = ()
    denied: bool = False
    stated_by: int | None = None


@dataclass(frozen=True, slots=True)
class StoreCall:
    """Contents that one caller stores in one scope, in order, all of them or none; equal contents may repeat.

    sources: one for each content. at_ms: when they were stated. acting: who makes the call (`retain.tenants.attribution`).
    facts: what is learned after the contents are stored, in order. also: statements of the caller's own tables, which
    are executed in the same transaction, after all of it; whoever has rows there has registered the scope. compared: ids of
    scopes; a content that one of their records states in the same words is not stored: that record is repeated, or kept as
    it is if it is another scope's.
    """

    scope: Scope
    news: tuple[NewRecord, ...]
    sources: tuple[RecordSource, ...]
    at_ms: int
    acting: str | None = None
    facts: tuple[LearnedFact, ...] = ()
    also: tuple[Statement, ...] = ()
    compared: tuple[str, ...] = ()

    @property
    def last_run_id(self) -> str:
        """The newest run of which something is stored; what is of no run counts as newer than all."""
        sources = (*self.sources, *(fact.source for fact in self.facts))
        return max((source.run_id or _NO_RUN for source in sources), default=_NO_RUN)

    def to_json(self) -> JsonObject:
        """Return the call as JSON."""
        return {
            "scope": asdict(self.scope),
            "news": [asdict(new) for new in self.news],
            "sources": [source.to_json() for source in self.sources],
            "at_ms": self.at_ms,
            "acting": self.acting,
            "facts": [asdict(fact) for fact in self.facts],
            "also": [[text, list(values)] for text, values in self.also],
            "compared": list(self.compared),
        }

    @classmethod
    def from_json(cls, shown: JsonObject) -> StoreCall:
        """Return the call that `to_json` showed. Raises: as `Scope` and `NewRecord`."""
        call = cast("_ShownCall", shown)
        news = tuple(map(_new_of, call["news"]))
        sources = tuple(RecordSource(**source) for source in call["sources"])
        facts = tuple(map(_fact_of, call["facts"]))
        also = tuple((text, tuple(values)) for text, values in call["also"])
        compared = tuple(call.get("compared", ()))  # a caller of an earlier version has none
        return cls(Scope(**call["scope"]), news, sources, call["at_ms"], call["acting"], facts, also, compared)

    def stated(self, last_id: str = "") -> list[Stated]:
        """Return the contents, then the facts, as new records, each with a greater id than the one before.

        Of facts that became valid at the same time the one with the greater id counts: that which was stated last.
        last_id: of what came before.
        """
        found: list[Stated] = []
        facts = [(fact.new, fact.source) for fact in self.facts]
        for new, source in [*zip(self.news, self.sources, strict=True), *facts]:
            found.append(stated_in(self.scope, new, source, self.at_ms, last_id))
            last_id = found[-1].record.id
        return found


class Writer(Protocol):
    """Stores contents: at once, or together with those of other callers."""

    async def store(self, call: StoreCall) -> list[StoreResult]:
        """Store the contents and learn the facts; return each content's result, in order, when all are durable.

        Raises: QuotaExceeded; Unavailable, UpstreamFailed: then nothing is visible, unless the answer of the commit was
            lost. Repeating the call is right in both cases.
        """
        ...


def stated_in(scope: Scope, new: NewRecord, source: RecordSource, now_ms: int, last_id: str = "") -> Stated:
    """Return the content as a new record of the scope, with a new id that is greater than the last one."""
    record = Record(
        **{name: getattr(new, name) for name in EDITABLE},
        id=id_after(new_id(), last_id),
        tenant_id=scope.tenant_id,
        scope_id=scope.scope_id,
        valid_from_ms=_valid_from(new, now_ms),
        valid_to_ms=None,
        recorded_at_ms=now_ms,
        updated_at_ms=now_ms,
        superseded_by=None,
        edited=source.origin == "person",
        utterance=new.utterance,
        source=source.to_json(),
    )
    return Stated(record, new.valid_from_ms)


def _valid_from(new: NewRecord, now_ms: int) -> int:
    """Return when a new record becomes valid: as given, else when it was uttered (at most now), else now."""
    if new.valid_from_ms is not None:
        return new.valid_from_ms
    uttered_ms = new.utterance.at_ms if new.utterance is not None else None
    return now_ms if uttered_ms is None else min(uttered_ms, now_ms)


def _new_of(shown: Mapping[str, Any]) -> NewRecord:
    return NewRecord(**{**shown, "utterance": _utterance_of(shown["utterance"])})


def _fact_of(shown: Mapping[str, Any]) -> LearnedFact:
    opposites, source = tuple(shown["opposites"]), RecordSource(**shown["source"])
    return LearnedFact(_new_of(shown["new"]), source, opposites, shown["denied"], shown["stated_by"])


def _utterance_of(shown: Mapping[str, Any] | None) -> Utterance | None:
    return None if shown is None else Utterance(**shown)
