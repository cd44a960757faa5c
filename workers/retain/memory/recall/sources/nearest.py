"""Search by vectors: what the vector index is asked, and what it is asked again when too few of its answers may be seen.

The index returns a hundred vectors at most, and D1 decides which of their records may be seen. When closed records, or
those that a filter leaves out, take most of the hundred places, the span of recording times is cut into slices, and each of
them is searched: until enough was found, everything was seen, or the bound is reached.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from retain.errors import Unavailable
from retain.limits.vectorize import GRACE_MS
from retain.memory.recall.evidence import CosineScale
from retain.memory.recall.times.dates import Interval
from retain.memory.records.vector_names import record_id_of, vector_namespace
from retain.ports import MetadataFilter, Vector, VectorIndex

CANDIDATES: Final = 100
"""The most candidates that one query finds: Vectorize's limit for topK.

Source: https://developers.cloudflare.com/vectorize/platform/limits/
"""
SPANS: Final = 2
"""How many of the times that a query names are searched besides."""
NEAR: Final = 20
"""A recall is widened when fewer of the nearest records may be seen, and less than half of those considered …"""
SLICES: Final = 4
"""… by cutting each span of time whose answer was full at the quartiles of what was found, before and after it …"""
MAX_QUERIES: Final = 30
"""… with at most so many further queries."""

_log = logging.getLogger(__name__)

Judge = Callable[[Sequence[str]], Awaitable[Mapping[str, tuple[int, bool]]]]
"""Returns when each of the records was recorded, epoch milliseconds, and whether it may be seen."""


@dataclass(frozen=True, slots=True)
class IndexAnswer:
    """One answer of the index, for the vectors recorded after one time and until another.

    cosine: of each record's best part. floor: the least cosine when the answer was full, else 0: what was not returned is at
    most as near.
    """

    after_ms: int | None
    until_ms: int | None
    cosine: Mapping[str, float]
    full: bool
    floor: float


@dataclass(frozen=True, slots=True)
class Nearest:
    """What the index found. pages: its answers, for spans that do not overlap. None when it did not answer.

    dated: what was found in the times that the query names.
    """

    cosine: Mapping[str, float]
    pages: tuple[IndexAnswer, ...] | None
    dated: frozenset[str] = frozenset()

    @property
    def floor(self) -> float | None:
        """The least cosine that something has which was not found; None when the index did not answer."""
        return None if self.pages is None else max([page.floor for page in self.pages], default=0.0)

    @property
    def full(self) -> bool:
        """Whether the index has more than it returned."""
        return any(page.full for page in self.pages or ())


def too_few(seen: int, considered: int, wanted: int) -> bool:
    """Return whether a recall is widened. seen: how many of the nearest that were considered may be seen."""
    return seen < max(NEAR, wanted) and 2 * seen < considered


NOTHING: Final = Nearest({}, ())
"""What is found without a vector, or without scopes."""


@dataclass(frozen=True, slots=True)
class Widened:
    """What widening found: only records that may be seen. complete: there are enough, or everything was looked at."""

    nearest: Nearest
    complete: bool


class VectorSearch:
    """The search for one query's vector among the vectors of one tenant that pass a filter."""

    def __init__(
        self, index: VectorIndex, tenant_id: str, criteria: MetadataFilter, vector: Vector, scale: CosineScale
    ) -> None:
        """criteria: without a condition on `created_at`, which is `until_ms` of the search. scale: of what is returned."""
        self._index = index
        self._namespace = vector_namespace(tenant_id)
        self._criteria = criteria
        self._vector = vector
        self._scale = scale

    async def nearest(self, until_ms: int | None = None, spans: Sequence[Interval] = ()) -> Nearest:
        """Return the nearest records, recorded until a time. It is `Nearest` without pages when the index is away.

        spans: times that the query names. Of what was recorded in the first `SPANS`, the nearest are returned as well.
        """
        last_ms = math.inf if until_ms is None else until_ms
        named = [(one.from_ms - 1, int(min(one.to_ms - 1, last_ms))) for one in spans if one.from_ms <= last_ms]
        try:
            page, *others = await asyncio.gather(
                self._ask(None, until_ms), *(self._ask(after_ms, to_ms) for after_ms, to_ms in named[:SPANS])
            )
        except Unavailable as error:
            _log.warning("a recall does without the vector index", extra={"code": error.code})
            return Nearest({}, None)
        dated = {one: near for found in others for one, near in found.cosine.items()}
        return Nearest({**dated, **page.cosine}, (page,), frozenset(dated))

    async def widened(self, nearest: Nearest, judge: Judge, wanted: int) -> Widened:
        """Return the nearest records that may be seen, `wanted` of them or more if the bound allows it.

        An index that is away meanwhile ends it. Raises: as `judge`.
        """
        pages = list(nearest.pages or ())
        known = dict(await judge(list(nearest.cosine)))
        cosine = {one: near for one, near in nearest.cosine.items() if one in known and known[one][1]}
        left = MAX_QUERIES
        while len(cosine) < max(NEAR, wanted):
            cuts = self._cuts(pages, known, left)
            if not cuts:
                break
            try:
                answers = await asyncio.gather(*(self._ask(*span) for _, spans in cuts for span in spans))
            except Unavailable as error:
                _log.warning("a recall is not widened further", extra={"code": error.code})
                return Widened(Nearest(cosine, tuple(pages)), complete=False)
            left -= len(answers)
            whole = [page for page, _ in cuts]
            pages = [page for page in pages if page not in whole] + answers
            found = {one: near for page in answers for one, near in page.cosine.items()}
            known |= await judge([one for one in found if one not in known])
            cosine |= {one: near for one, near in found.items() if one in known and known[one][1]}
        enough = len(cosine) >= max(NEAR, wanted)
        return Widened(Nearest(cosine, tuple(pages)), enough or not any(page.full for page in pages))

    def _cuts(
        self, pages: Sequence[IndexAnswer], known: Mapping[str, tuple[int, bool]], left: int
    ) -> list[tuple[IndexAnswer, list[tuple[int | None, int | None]]]]:
        """Return the full pages that are cut next, nearest first, and the spans that each is cut into.

        left: how many queries may be made.
        """
        cuts = []
        for page in sorted((page for page in pages if page.full), key=lambda page: -page.floor):
            inner = _inner(page, [known[one][0] for one in page.cosine if one in known])
            if not inner or len(inner) + 1 > left:
                continue
            left -= len(inner) + 1
            cuts.append((page, list(zip([page.after_ms, *inner], [*inner, page.until_ms], strict=True))))
        return cuts

    async def _ask(self, after_ms: int | None, until_ms: int | None) -> IndexAnswer:
        span = {"$gt": after_ms, "$lte": until_ms}
        bounds = {name: bound for name, bound in span.items() if bound is not None}
        criteria: MetadataFilter = {**self._criteria, **({"created_at": bounds} if bounds else {})}
        matches = await self._index.query(self._vector, namespace=self._namespace, filter=criteria, top_k=CANDIDATES)
        cosine: dict[str, float] = {}
        for match in matches:
            record_id = record_id_of(match.id)
            cosine[record_id] = max(self._scale.scaled(match.score), cosine.get(record_id, -math.inf))
        full = len(matches) == CANDIDATES
        return IndexAnswer(after_ms, until_ms, cosine, full, self._scale.scaled(matches[-1].score) if full else 0.0)


def _inner(page: IndexAnswer, recorded_ms: Sequence[int]) -> list[int]:
    """Return the times that divide an answer's span: the quartiles of what was found, and what is before and after it.

    A vector's time may be up to a minute before its record's. So many that were recorded at once are divided by halves.
    """
    times = sorted(recorded_ms)
    if not times:
        return []
    quartiles = {times[len(times) * part // SLICES] for part in range(1, SLICES)}
    points = {times[0] - GRACE_MS - 1, times[0] - 1, times[-1], *quartiles}
    after_ms, until_ms = page.after_ms, page.until_ms
    inner = [one for one in points if (after_ms is None or one > after_ms) and (until_ms is None or one < until_ms)]
    if not inner and after_ms is not None and until_ms is not None and until_ms - after_ms > 1:
        inner = [(after_ms + until_ms) // 2]
    return sorted(inner)
