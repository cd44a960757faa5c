"""The benchmark of precision reads its data set, and counts what was returned unasked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.precision import measure, row
from benchmarks.recall import ROOT
from retain.models.embedders.static import StaticEmbedder


def statement(name: str, content: str, scope: str = "code", **changes: Any) -> dict[str, Any]:
    """Return a statement as the data set has it."""
    return {
        "_id": name, "user_id": "test-user", "canonical_name": name, "aliases": [], "content": content, "scope": [scope],
        "why_it_matters": "", "pinned": False, "superseded_by": None, "resolved_at": None, **changes,
    }  # fmt: skip


def case(query: str, scope: str, *wanted: str, **more: Any) -> dict[str, Any]:
    """Return a question as the data set has it."""
    return {"query": query, "scope": [scope], "expect": {"relevantBeliefs": {"shouldOnlyInclude": [*wanted]}}, **more}


async def test_what_was_asked_for_and_what_came_with_it(tmp_path: Path) -> None:
    statements = [
        statement("redis", "Redis keeps the sessions of the web server."),
        statement("character", "Redis is the name of the sailor's parrot.", "novel"),
        statement("old", "Memcached keeps the sessions.", superseded_by="redis"),
        statement("always", "Redis is pinned to version 7.", pinned=True),
        statement("other", "Redis is what Ben likes.", user_id="other-user"),
    ]
    cases = [
        case("What do we use Redis for?", "code", "redis"),
        case("Who is Redis?", "novel", "character"),
        case("Which penny is worth most?", "code"),
        case("Redis?", "code", "redis", budget={"maxBeliefs": 1}),
        case("", "code"),
    ]
    (tmp_path / "fixtures").mkdir()
    for name, content in (("beliefs.seed", statements), ("retrieval.cases", cases)):
        (tmp_path / "fixtures" / f"{name}.json").write_text(json.dumps(content))
    measured = await measure(tmp_path, StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin"))
    assert measured["full text"] == [({"redis"}, {"redis"}), ({"character"}, {"character"}), (set(), set())]
    assert row(measured["full text"]) == (1.0, 1.0, 2, 1)
    assert measured["vectors"] == [({"redis"}, {"redis"}), ({"character"}, {"character"}), (set(), {"redis"})]
    assert row(measured["vectors"]) == (2 / 3, 1.0, 2, 0)
    assert row(measured["retain, floor 0.3"]) == (1.0, 1.0, 2, 1)
