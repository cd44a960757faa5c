"""Fill a database with memories in seconds: rows as a store writes them, a thousand for each statement.

One agent's scope holds them all. Of four memories two are messages of conversations of a hundred turns, one is a fact with
subject and predicate, and one is a plain note. Their words follow Zipf's law, so queries of every kind meet what they meet
in use: words that one memory has, and words that half of them have.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import product

from retain.limits.vector_filter import FILTERABLE
from retain.limits.vectorize import LAG_MS
from retain.memory.recall.preparation import SIGNATURE_BITS, prepare
from retain.memory.recall.words import indexed_text
from retain.memory.records.record import Utterance, content_hash
from retain.memory.scope import Scope, registration
from retain.ports import MetadataFilter, PropertyType, Sql, Vector, VectorEntry, VectorMatch

SCOPE = Scope("acme", "clerk")
START_MS = 1_700_000_000_000
CUSTOMERS = 1000
"""Every thousandth memory is about the same customer."""
_WORDS = ["".join(parts) for parts in product("bdfgklmnprst", "aeiou", "blmnrst", "aeiou")]
_WEIGHTS = [1 / place for place in range(1, len(_WORDS) + 1)]
COMMON = _WORDS[:8]
"""Words that many memories have."""
_TURNS = 100
_STEP = 1000
_EACH = "FROM json_each(?) one"
_RECORDS = (
    "number, id, tenant_id, scope_id, kind, content, metadata, subject, predicate, object, confidence, importance,"
    " valid_from_ms, recorded_at_ms, updated_at_ms, edited, conversation, position, speaker, said_at_ms, source,"
    " content_hash"
)
_SEARCH = (
    "number, tenant_id, scope_id, conversation, position, length, words, span, terms, names_time, asking, signature,"
    " parts, embedding_model"
)
_EVENTS = "event_id, tenant_id, record_id, kind, data, source, nonce, digest, at_ms"
_TEXTS = "rowid, content"


class FewVectors:
    """A vector index that answers each query with a hundred of the ids that it was given, and holds nothing."""

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids

    @property
    def filterable(self) -> Mapping[str, PropertyType]:
        """Return what every index filters by."""
        return FILTERABLE

    @property
    def lag_ms(self) -> int:
        """Return the lag of the platform's index."""
        return LAG_MS

    async def upsert(self, entries: Sequence[VectorEntry]) -> str:  # noqa: ARG002 -- the port's name
        """Do nothing."""
        return "done"

    async def delete_by_ids(self, ids: Sequence[str]) -> str:  # noqa: ARG002 -- the port's name
        """Do nothing."""
        return "done"

    async def get_by_ids(self, ids: Sequence[str]) -> list[VectorEntry]:  # noqa: ARG002 -- the port's name
        """Return nothing."""
        return []

    async def dimensions(self) -> int:
        """Return those of the shipped model."""
        return 256

    async def count(self) -> int:
        """Return how many ids there are."""
        return len(self._ids)

    async def query(
        self,
        vector: Vector,
        *,
        namespace: str,  # noqa: ARG002
        filter: MetadataFilter,  # noqa: A002, ARG002 -- the port's name
        top_k: int,
        with_metadata: bool = False,  # noqa: ARG002
    ) -> list[VectorMatch]:
        """Return ids that depend on the vector alone."""
        chance = random.Random(repr(vector[:8]))
        found = chance.sample(self._ids, min(top_k, len(self._ids)))
        return [VectorMatch(f"{one}#0", 0.6 - place / 500) for place, one in enumerate(found)]


def words(chance: random.Random, count: int) -> str:
    """Return made-up words."""
    return " ".join(chance.choices(_WORDS, _WEIGHTS, k=count))


def record_id(number: int) -> str:
    """Return the id of a memory, which is a ULID."""
    return f"01H{number:023d}"


async def fill(sql: Sql, count: int, model: str, scope: Scope = SCOPE) -> list[str]:
    """Write this many memories, numbered from 1; return their ids. model: the embedding model that their rows name."""
    chance = random.Random(1)
    await sql.batch(registration(scope))
    for start in range(1, count + 1, _STEP):
        rows = [_memory(chance, number, model, scope) for number in range(start, min(start + _STEP, count + 1))]
        records, search, texts, events = zip(*rows, strict=True)
        await sql.batch(
            [
                _insert("memory_records", _RECORDS, records),
                _insert("memory_search", _SEARCH, search),
                _insert("memory_text", _TEXTS, texts),
                _insert("memory_events", _EVENTS, events),
            ]
        )
    return [record_id(number) for number in range(1, count + 1)]


def _insert(table: str, columns: str, rows: Sequence[Sequence[object]]) -> tuple[str, tuple[str]]:
    values = ", ".join(f"one.value ->> {place}" for place in range(len(columns.split(","))))
    return f"INSERT INTO {table} ({columns}) SELECT {values} {_EACH}", (json.dumps(rows),)


def _memory(chance: random.Random, number: int, model: str, scope: Scope) -> Iterator[Sequence[object]]:
    """Yield the rows of one memory: record, search row, full text and event."""
    own = f"AB-{number:06}"
    content = f"{words(chance, chance.choice((8, 16, 32)))} {own}."
    at_ms = START_MS + 1000 * number
    turn = number // 2
    utterance = Utterance(f"talk-{turn // _TURNS}", turn % _TURNS, "Ann", at_ms) if number % 2 else None
    fact = (f"thing-{number}", "is", own) if number % 4 == 0 else (None, None, None)
    kind = "event" if number % 2 else "fact"
    metadata = json.dumps({"customer": f"c-{number % CUSTOMERS}", "topic": f"t-{number % 20}"})
    digest = content_hash(content, utterance)
    place = (None,) * 4 if utterance is None else (utterance.conversation, utterance.position, "Ann", at_ms)
    one, where = record_id(number), (scope.tenant_id, scope.scope_id)
    source = '{"origin": "person"}'
    times = (at_ms, at_ms, at_ms)
    yield (number, one, *where, kind, content, metadata, *fact, 1.0, 0.5, *times, 0, *place, source, digest)
    prepared = prepare(content, utterance)
    signed = f"{chance.getrandbits(SIGNATURE_BITS):x}"
    counts = (prepared.length, len(prepared.stems), prepared.span, prepared.terms)
    yield (number, *where, *place[:2], *counts, int(prepared.names_time), prepared.asking, signed, 1, model)
    yield number, indexed_text(*where, list(prepared.stems))
    nonce = sha256(one.encode()).hexdigest()
    yield f"01G{number:023d}", scope.tenant_id, one, "stored", "{}", source, nonce[:32], nonce, at_ms
