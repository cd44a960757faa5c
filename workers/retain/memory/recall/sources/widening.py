"""A recall of which most of the nearest records may not be seen: what else may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from retain.json_text import read_own_json
from retain.memory.recall import candidates
from retain.memory.recall.as_of import read_records
from retain.memory.recall.candidates import Visible
from retain.memory.recall.evidence import Evidence, closest
from retain.memory.recall.sources.matching import NEWEST, held, read_matching
from retain.memory.recall.sources.nearest import CANDIDATES, Nearest, VectorSearch
from retain.ports import Sql, Statement


async def widened(
    sql: Sql,
    vectors: VectorSearch,
    evidence: Evidence,
    nearest: Nearest,
    visible: Visible,
    *,
    filtered: bool,
    wanted: int,
    model: str,
) -> tuple[Evidence, bool]:
    """Return what is found with the nearest records that may be seen, and whether these are enough or all.

    evidence, nearest: what was found without. filtered: whether `evidence` has the records that meet a filter. wanted: how
    many the caller wants.
    """
    read = await sql.batch([held(visible, model, newest=0 if filtered else NEWEST)])
    valid = read_matching(read[0].rows[0])
    if valid.complete or not filtered:  # few are valid, or a scope holds few of what an index finds
        nearest_valid = closest(valid, evidence.query_signature, CANDIDATES)
        evidence = replace(evidence, matching=nearest_valid, met=valid.numbers)
    if evidence.met is not None:
        return evidence, True

    async def judge(ids: Sequence[str]) -> Mapping[str, tuple[int, bool]]:
        found = await _listed(sql, candidates.recorded(visible, ids))
        if visible.known_at_ms is None:
            return {one: (int(at_ms), bool(seen)) for one, at_ms, seen in found}
        known = await read_records(sql, [one for one, _, seen in found if seen], visible)
        return {one: (int(at_ms), one in known) for one, at_ms, _ in found}

    further = await vectors.widened(nearest, judge, wanted)
    own = {one: cosine for one, cosine in evidence.cosine.items() if nearest.cosine.get(one) != cosine}
    found = replace(evidence, cosine={**further.nearest.cosine, **own}, floor=further.nearest.floor)
    return found, further.complete


async def _listed(sql: Sql, statement: Statement) -> list[Any]:
    """Return the elements of the JSON array that a statement returns."""
    [result] = await sql.batch([statement])
    found: list[Any] = read_own_json(result.rows[0]["found"])
    return found
