"""What the stand-in keeps across a crash, and when a write becomes visible."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.vectorize.http_index import HttpBinding, Refused
from tests.vectorize.workerd import running, variables

pytestmark = pytest.mark.workerd

NOW = 1_800_000_000_000
ROOT = [1, 0, 0, 0]


@asynccontextmanager
async def started(state: Path, **changes: object) -> AsyncIterator[HttpBinding]:
    """Run a stand-in of four dimensions; kill it at the end."""
    with running(state, {"VECTORIZE": variables(**{"DIMENSIONS": "4", "ALLOW_CONTROL": "1", **changes})}) as url:
        async with httpx.AsyncClient(base_url=url, timeout=60) as client:
            yield HttpBinding(client, "VECTORIZE")


async def found(index: HttpBinding, **options: object) -> list[str]:
    return [one["id"] for one in (await index.call("query", ROOT, options))["matches"]]


async def test_what_was_answered_survives_a_crash(tmp_path: Path) -> None:
    async with started(tmp_path) as index:
        await index.call(
            "upsert", [{"id": name, "values": [1, y, 0, 0], "namespace": "n"} for y, name in enumerate("abc")]
        )
        await index.call("deleteByIds", ["b"])
        await index.call("upsert", [{"id": "c", "values": [0, 1, 2, 3], "metadata": {"kind": "fact", "note": "é"}}])
        before = await index.call("describe")
    async with started(tmp_path) as index:
        assert await index.call("describe") == before
        assert await found(index) == ["a", "c"]
        assert await found(index, namespace="n") == ["a"]
        assert await found(index, filter={"kind": "fact"}) == ["c"]
        assert await index.call("getByIds", ["a", "b", "c"]) == [
            {"id": "a", "values": [1, 0, 0, 0], "namespace": "n"},
            {"id": "c", "values": [0, 1, 2, 3], "metadata": {"kind": "fact", "note": "é"}},
        ]


async def test_a_new_metadata_index_has_only_what_is_written_after_it(tmp_path: Path) -> None:
    old = {"id": "old", "values": ROOT, "metadata": {"kind": "fact", "colour": "red"}}
    async with started(tmp_path) as index:
        await index.call("upsert", [old])
        assert await found(index, filter={"colour": "red"}) == []
    async with started(tmp_path, METADATA_INDEXES={"kind": "string", "colour": "string"}) as index:
        await index.call("upsert", [{**old, "id": "new"}])
        assert await found(index, filter={"colour": "red"}) == ["new"]
        assert await found(index, filter={"kind": "fact"}) == ["new", "old"]
        await index.call("upsert", [old])
        assert await found(index, filter={"colour": "red"}) == ["new", "old"]


async def test_an_index_keeps_the_dimensions_it_was_created_with(tmp_path: Path) -> None:
    async with started(tmp_path) as index:
        await index.call("describe")
    async with started(tmp_path, DIMENSIONS="5") as index:
        with pytest.raises(Refused, match="made with 4 dimensions, DIMENSIONS says 5"):
            await index.call("describe")
    async with started(tmp_path, DIMENSIONS="5", INDEX_NAME="another") as index:
        assert (await index.call("describe"))["dimensions"] == 5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DIMENSIONS", "0"),
        ("DIMENSIONS", "1537"),
        ("DIMENSIONS", "many"),
        ("METADATA_INDEXES", {f"p{number}": "string" for number in range(11)}),
        ("METADATA_INDEXES", {"kind": "text"}),
        ("VISIBILITY_DELAY_MS", "-1"),
        ("VISIBILITY_DELAY_MS", "soon"),
    ],
)
async def test_an_invalid_variable_is_named(tmp_path: Path, name: str, value: object) -> None:
    async with started(tmp_path, **{name: value}) as index:
        with pytest.raises(Refused, match=name):
            await index.call("describe")


async def test_a_write_becomes_visible_after_the_delay(tmp_path: Path) -> None:
    async with started(tmp_path, VISIBILITY_DELAY_MS="5000") as index:
        await index.call("control", {"nowMs": NOW})
        first = await index.call("upsert", [{"id": "a", "values": ROOT}])
        for now in (NOW, NOW + 4999):
            await index.call("control", {"nowMs": now})
            assert await found(index) == []
            assert await index.call("getByIds", ["a"]) == []
            nothing = {"dimensions": 4, "vectorCount": 0, "processedUpToDatetime": None, "processedUpToMutation": None}
            assert await index.call("describe") == nothing
        await index.call("control", {"nowMs": NOW + 5000})
        assert await found(index) == ["a"]
        assert [one["id"] for one in await index.call("getByIds", ["a"])] == ["a"]
        described = await index.call("describe")
        assert described["vectorCount"] == 1
        assert described["processedUpToMutation"] == first["mutationId"]
        await index.call("upsert", [{"id": "b", "values": ROOT}])
        last = await index.call("deleteByIds", ["a"])
        assert await found(index) == ["a"]
        await index.call("control", {"nowMs": NOW + 10_000})
        assert await found(index) == ["b"]
        assert (await index.call("describe"))["processedUpToMutation"] == last["mutationId"]


@pytest.mark.parametrize(
    ("method", "arguments", "sees"),
    [
        ("query", [ROOT, {}], lambda answer: answer["count"] == 1),
        ("queryById", ["a", {}], lambda answer: answer["count"] == 1),
        ("getByIds", [["a"]], lambda answer: len(answer) == 1),
        ("describe", [], lambda answer: answer["vectorCount"] == 1),
    ],
    ids=["query", "queryById", "getByIds", "describe"],
)
async def test_each_kind_of_read_alone_sees_what_is_due(
    tmp_path: Path, method: str, arguments: list[object], sees: Callable[[Any], bool]
) -> None:
    async with started(tmp_path, VISIBILITY_DELAY_MS="5000") as index:
        await index.call("control", {"nowMs": NOW})
        await index.call("upsert", [{"id": "a", "values": ROOT}])
        await index.call("control", {"nowMs": NOW + 5000})
        assert sees(await index.call(method, *arguments))


async def test_mutations_become_visible_in_the_order_in_which_they_were_made(tmp_path: Path) -> None:
    async with started(tmp_path, VISIBILITY_DELAY_MS="5000") as index:
        await index.call("control", {"nowMs": NOW})
        await index.call("upsert", [{"id": "a", "values": ROOT}, {"id": "b", "values": ROOT}])
        # A clock that goes back must not let the later mutation overtake.
        await index.call("control", {"nowMs": NOW - 60_000})
        await index.call("deleteByIds", ["a"])
        await index.call("insert", [{"id": "b", "values": [9, 9, 9, 9]}, {"id": "c", "values": ROOT}])
        await index.call("control", {"nowMs": NOW - 1})
        assert await found(index) == []
        await index.call("control", {"nowMs": NOW + 5000})
        assert await found(index) == ["b", "c"]
        assert [one["values"] for one in await index.call("getByIds", ["b"])] == [ROOT]


async def test_an_invisible_write_survives_a_crash_and_a_change_of_the_delay(tmp_path: Path) -> None:
    async with started(tmp_path, VISIBILITY_DELAY_MS="5000") as index:
        await index.call("control", {"nowMs": NOW})
        vector = {"id": "a", "values": ROOT, "namespace": "n", "metadata": {"kind": "fact"}}
        await index.call("upsert", [vector])
    async with started(tmp_path, VISIBILITY_DELAY_MS="0") as index:
        await index.call("control", {"nowMs": NOW + 1})
        # Without its own delay, it still waits for the one before it.
        await index.call("deleteByIds", [])
        await index.call("upsert", [{"id": "b", "values": ROOT}])
        assert await found(index) == []
        await index.call("control", {"nowMs": NOW + 5000})
        assert await found(index) == ["a", "b"]
        assert await found(index, namespace="n", filter={"kind": "fact"}) == ["a"]
        assert await index.call("getByIds", ["a"]) == [vector]
        await index.call("deleteByIds", ["a"])
        assert await found(index) == ["b"]
