"""An administrator's operations on a tenant's memory, as typed calls, shared by HTTP and the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from retain.admin.context import AdminContext
from retain.errors import InvalidInput, NotFound, UnknownScope
from retain.identifiers import check_id
from retain.json_text import JsonObject
from retain.memory.recall.as_of import list_known
from retain.memory.recall.recall import Hit
from retain.memory.records.events import KnownRecord, LearningEvent
from retain.memory.records.listing import Listing
from retain.memory.records.record import NewRecord, Record, RecordSource
from retain.memory.scope import Scope, UserPlace, View, holding
from retain.memory.semantic import EVENTS_PER_PAGE, RecallQuery, RecallResult, SemanticMemory, StoreResult

_KNOWN_SCOPE = "SELECT 1 FROM scopes WHERE tenant_id = ? AND scope_id = ?"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who owns a memory: an agent, a house, a user (of one agent, or of all), or the whole tenant when none is given."""

    agent_type: str | None = None
    house: str | None = None
    user_id: str | None = None


WHOLE_TENANT = Owner()
"""The tenant itself."""


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records in the order in which they were stored, and the cursor of the next page (None on the last)."""

    records: Sequence[Record]
    cursor: str | None

    def to_json(self) -> Mapping[str, object]:
        """Return the page as JSON."""
        return {"memories": [record.to_json() for record in self.records], "cursor": self.cursor}


@dataclass(frozen=True, slots=True)
class RecordHistory:
    """A record with its last event's id, and a page of its learning events, oldest first. more: whether others follow."""

    known: KnownRecord
    events: Sequence[LearningEvent]
    more: bool

    def to_json(self) -> Mapping[str, object]:
        """Return the record with its events as JSON, and the cursor of the next page of them."""
        cursor = self.events[-1].event_id if self.more else None
        return {
            **self.known.record.to_json(),
            "last_event_id": self.known.last_event_id,
            "events": [asdict(event) for event in self.events],
            "cursor": cursor,
        }


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a recall answers. min_score: below which relevance it left candidates out."""

    result: RecallResult
    min_score: float = 0.0

    def to_json(self, *, explain: bool = False) -> Mapping[str, object]:
        """Return the hits, and what the recall did without, as JSON. explain: with the components of each score."""
        shown = [_shown(hit, explain=explain) for hit in self.result.hits]
        answer: dict[str, object] = {"memories": shown, "degraded": list(self.result.degraded)}
        if self.result.runners_up:
            answer["runners_up"] = [
                _shown(hit, explain=explain) | {"left_out": "min_score" if hit.relevance < self.min_score else "rank"}
                for hit in self.result.runners_up
            ]
        return answer


class MemoryDesk:
    """The memory of one registered tenant, as a person changes it.

    Every method raises: NotFound (code `unknown_agent`) for an owner that does not exist; InvalidInput; Unavailable.
    """

    def __init__(self, context: AdminContext, tenant_id: str, by: str = "") -> None:
        """by: the person, as Cloudflare Access names them: in the source of each of their changes."""
        self._context = context
        self._tenant_id = tenant_id
        self._source = RecordSource("person", by=by or None)

    async def store(self, owner: Owner, new: NewRecord) -> StoreResult:
        """Store one memory. Idempotent by content. Raises: InvalidInput (code `invalid_expires_at_ms`) if expired."""
        return (await self.store_all(owner, [new]))[0]

    async def store_all(self, owner: Owner, news: Sequence[NewRecord]) -> list[StoreResult]:
        """Store several memories, all or none; return a result for each, in order. Idempotent by content.

        Raises: InvalidInput (code `invalid_expires_at_ms`) when one has expired: nobody would ever see it.
        """
        now_ms = self._context.clock()
        if any(new.expires_at_ms is not None and new.expires_at_ms <= now_ms for new in news):
            raise InvalidInput("a new memory must expire in the future", code="invalid_expires_at_ms")
        return await self._memory(await self._scope(owner)).store_all(news, self._source)

    async def list(
        self,
        owner: Owner,
        *,
        conditions: JsonObject,
        closed_too: bool = False,
        valid_at_ms: int | None = None,
        as_of_ms: int | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> RecordPage:
        """Return memories at or below the owner's scope, oldest first; of a user without an agent, from all their scopes.

        conditions: as a recall's filter. closed_too: include those that are not valid. valid_at_ms: those that were or will
        be valid then, instead of now. as_of_ms: what was known then, in the state that it had, and was valid then; such a
        page may have fewer records than the limit before the last.
        Raises: InvalidInput (code `invalid_valid_at`), also for a time together with `closed_too`; NotFound (code
            `unknown_scope`) for a house with no stored memory and no agent that has run, as `recall`.
        """
        if valid_at_ms is not None and closed_too:
            raise InvalidInput("valid_at_ms asks for those that are valid then, not for all", code="invalid_valid_at")
        times = (valid_at_ms, as_of_ms, self._context.clock())
        held_at_ms = None if closed_too else next(one for one in times if one is not None)
        wanted = Listing(conditions, held_at_ms, cursor, limit, as_of_ms)
        page = RecordPage(*await list_known(self._context.sql, await self._place(owner), wanted))
        if not page.records and owner.house is not None:
            scope_id = (await self._scope(owner)).scope_id
            if not (await self._context.sql.run(_KNOWN_SCOPE, self._tenant_id, scope_id)).rows:
                raise UnknownScope("the house is unknown")
        return page

    async def get(
        self, owner: Owner, record_id: str, *, after: str = "", limit: int = EVENTS_PER_PAGE
    ) -> RecordHistory:
        """Return one memory that the owner sees, with a page of its learning events after the one with an id.

        Raises: NotFound (code `no_such_memory`).
        """
        memory = self._context.semantic(await self._view(owner))
        return RecordHistory(*await memory.page_of(record_id, after=after, limit=limit))

    async def edit(
        self, owner: Owner, record_id: str, changes: Mapping[str, Any], *, based_on: str | None = None
    ) -> Record:
        """Change fields of one memory at or below the owner's scope.

        `valid_to_ms` alone closes it at that time, or opens it again with None. based_on: the id of the event that must be
        its last one.
        Raises: NotFound (code `no_such_memory`); Conflict (code `duplicate_content`, `memory_changed`, `contended`).
        """
        memory = await self._holding(owner, record_id)
        if set(changes) != {"valid_to_ms"}:
            return await memory.edit(record_id, changes, self._source, based_on=based_on)
        if changes["valid_to_ms"] is None:
            return await memory.restore(record_id, self._source, based_on=based_on)
        return await memory.invalidate(record_id, changes["valid_to_ms"], self._source, based_on=based_on)

    async def forget(self, owner: Owner, record_id: str) -> None:
        """Delete one memory at or below the owner's scope.

        Raises: NotFound (code `no_such_memory`); Conflict (code `contended`).
        """
        await (await self._holding(owner, record_id)).delete(record_id, self._source)

    async def recall(
        self,
        owner: Owner,
        query: str,
        *,
        top_k: int = 5,
        as_of_ms: int | None = None,
        valid_at_ms: int | None = None,
        conditions: JsonObject | None = None,
        min_score: float = 0.0,
        turns: Sequence[str] = (),
        runners_up: int = 0,
    ) -> Recalled:
        """Recall as the owner would, or over every memory of the tenant.

        as_of_ms, valid_at_ms, min_score: runners_up: as `RecallQuery`; turns: its `context`.
        Of a user with an agent: what a run of the agent for that user sees. Of a user alone: all their scopes, and what is
        visible from them.
        Raises: NotFound (code `unknown_scope`) for a house with no stored memory and no agent that has run; LimitExceeded
            (code `too_many_scopes`).
        """
        whole = owner == WHOLE_TENANT
        wanted = RecallQuery(
            query,
            top_k=top_k,
            as_of_ms=as_of_ms,
            valid_at_ms=valid_at_ms,
            filter=conditions or {},
            below=whole,
            min_score=min_score,
            context=turns,
            runners_up=runners_up,
        )
        # An agent is in the catalogue and the tenant registered; a house may be misspelt.
        register = owner.house is None
        memory = self._context.semantic(await self._view(owner))
        return Recalled(await memory.recall(wanted, register=register), min_score)

    async def _view(self, owner: Owner) -> View:
        return await self._context.view(self._tenant_id, owner.agent_type, owner.house, owner.user_id)

    async def _holding(self, owner: Owner, record_id: str) -> SemanticMemory:
        """Return the memory in which the owner may change one record. Raises: NotFound (code `no_such_memory`)."""
        place = await self._place(owner)
        if isinstance(place, Scope):
            return self._memory(place)
        within, names = holding(place, "r.scope_id")
        theirs = f"SELECT 1 FROM memory_records r WHERE r.tenant_id = ?1 AND r.id = ?3 AND {within}"  # noqa: S608
        if not (await self._context.sql.run(theirs, *names, check_id(record_id))).rows:
            raise NotFound("there is no such memory", code="no_such_memory")
        return self._memory(await self._scope(WHOLE_TENANT))

    def _memory(self, scope: Scope) -> SemanticMemory:
        return self._context.semantic(View(scope))

    async def _place(self, owner: Owner) -> Scope | UserPlace:
        """Return where the owner's memories are."""
        scope = await self._scope(owner)
        if owner.user_id is not None and owner.agent_type is None:
            return UserPlace(self._tenant_id, owner.user_id)
        return scope

    async def _scope(self, owner: Owner) -> Scope:
        return await self._context.scope(self._tenant_id, owner.agent_type, owner.house, owner.user_id)


def _shown(hit: Hit, *, explain: bool) -> dict[str, object]:
    shown: dict[str, object] = {
        **hit.record.to_json(),
        "score": round(hit.score, 6),
        "relevance": round(hit.relevance, 6),
    }
    if explain:
        shown["components"] = {name: round(value, 6) for name, value in hit.components.items()}
        shown["found_by"] = list(hit.found_by)
    return shown
