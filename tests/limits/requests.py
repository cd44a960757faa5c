"""Limits that a request meets, tried through the whole Worker: bodies, memories, recall, runs, pages."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from tests.limits.limit import TENANT, Bench, ServedLimit, text_of

_MEMORIES = "/admin/tenants/{tenant}/memories"
_AGENT = {
    "type": "reader",
    "description": "Reads what it is sent.",
    "instructions": "Read.",
    "model": {"script": "sdr"},
    "limits": {"context_tokens": 1_000_000},
}
_RUN = "/v1/agents/{tenant}/reader/run"
_LIMITS = "retain.memory.records.limits."


async def _stored(bench: Bench, **fields: Any) -> None:
    """Store a memory, and read all of it."""
    stored = await bench.ask("POST", _MEMORIES, {"content": "The sky is blue.", **fields})
    shown = await bench.ask("GET", f"{_MEMORIES}/{stored['id']}")
    assert {name: shown[name] for name in fields} == fields


async def _edited(bench: Bench, **fields: Any) -> None:
    [memory] = (await bench.ask("GET", _MEMORIES))["memories"]
    await bench.ask("PATCH", f"{_MEMORIES}/{memory['id']}", fields)
    shown = await bench.ask("GET", f"{_MEMORIES}/{memory['id']}")
    assert {name: shown[name] for name in fields} == fields


async def _one(bench: Bench) -> None:
    await bench.ask("POST", _MEMORIES, {"content": "The sky is blue."})


async def _body(bench: Bench, size: int, *, whole: bool) -> None:
    """Store with a body of so many bytes, sent with its length or in pieces."""
    body = json.dumps({"content": "The sky is blue."}).encode()
    body += b" " * (size - len(body))
    pieces = [body[start : start + 65_536] for start in range(0, size, 65_536)]
    headers = {"content-length": str(size)} if whole else {}
    stored = await bench.ask("POST", _MEMORIES, headers=headers, pieces=pieces)
    assert (await bench.ask("GET", f"{_MEMORIES}/{stored['id']}"))["content"] == "The sky is blue."


async def _seeded(bench: Bench, count: int) -> None:
    memories = [{"content": f"Fact number {number}."} for number in range(count)]
    seeded = await bench.ask(
        "POST", "/admin/seed-memory", {"tenant": TENANT, "agent_type": "sdr", "memories": memories}
    )
    assert len(set(seeded["ids"])) == count


async def _recalled(bench: Bench, **sent: Any) -> Any:
    return await bench.ask("POST", f"{_MEMORIES}/recall", {"query": "the sky", **sent})


async def _asked(bench: Bench, size: int) -> None:
    assert (await _recalled(bench, query=f"sky {text_of(size - 4)}"))["memories"]


async def _in_conversation(bench: Bench, count: int) -> None:
    assert (await _recalled(bench, context=["the sky"] * count))["memories"]


async def _after(bench: Bench, size: int) -> None:
    assert (await _recalled(bench, context=[{"role": "user", "content": text_of(size)}]))["memories"]


async def _filtered(bench: Bench, size: int) -> None:
    value = text_of(size - len('{"subject":""}'))
    await _recalled(bench, filter={"subject": value})
    query = json.dumps({"subject": value}).replace('"', "%22").replace(" ", "%20")
    await bench.ask("GET", f"{_MEMORIES}?filter={query}")


async def _conditions(bench: Bench, count: int) -> None:
    await _recalled(bench, filter={f"field{number}": number for number in range(count)})


async def _listed(bench: Bench, count: int) -> None:
    await _recalled(bench, filter={"n": {"$in": list(range(count))}})


async def _joined(bench: Bench, depth: int) -> None:
    wanted: dict[str, Any] = {"n": 1}
    for _ in range(depth):
        wanted = {"$and": [wanted]}
    await _recalled(bench, filter=wanted)


async def _scopes(bench: Bench) -> None:
    for number in range(30):
        await _in_house(bench, number)


async def _in_house(bench: Bench, number: int) -> None:
    content = f"The sky over house {number} is blue."
    await bench.ask("POST", _MEMORIES, {"content": content, "house": f"house{number}"})


async def _over_scopes(bench: Bench, count: int) -> None:
    """Recall over the whole tenant, when so many scopes have records."""
    for number in range(30, count):
        await _in_house(bench, number)
    bench.begin()
    assert len((await _recalled(bench, query="the sky over a house", top_k=50))["memories"]) == count


async def _top_k(bench: Bench, count: int) -> None:
    assert len((await _recalled(bench, top_k=count))["memories"]) == count


async def _runners_up(bench: Bench, count: int) -> None:
    assert len((await _recalled(bench, top_k=5, runners_up=count))["runners_up"]) == count


async def _sixty(bench: Bench) -> None:
    await _seeded(bench, 60)


async def _page(bench: Bench, size: int) -> None:
    """List a page of so many memories, of which there is one more: nothing is left out and nothing is shown twice."""
    page = await bench.ask("GET", f"{_MEMORIES}?limit={size}")
    assert len(page["memories"]) == size
    rest = await bench.ask("GET", f"{_MEMORIES}?limit={size}&cursor={page['cursor']}")
    assert len({one["id"] for one in [*page["memories"], *rest["memories"]]}) == 201
    assert rest["cursor"] is None


async def _two_hundred_and_one(bench: Bench) -> None:
    for start in (0, 100, 200):
        memories = [{"content": f"Fact number {number}."} for number in range(start, min(start + 100, 201))]
        await bench.ask("POST", "/admin/seed-memory", {"tenant": TENANT, "agent_type": "sdr", "memories": memories})


async def _similar(bench: Bench, size: int) -> None:
    assert (await bench.ask("GET", f"{_MEMORIES}/similar?limit={size}"))["cursor"] is None


async def _ran(bench: Bench, body: dict[str, Any]) -> Any:
    text = json.dumps(body, ensure_ascii=False)
    answer = await bench.ask("POST", _RUN, body=text.encode())
    await bench.worker.settled()
    return answer


async def _input(bench: Bench, size: int) -> None:
    run = await _ran(bench, {"input": text_of(size)})
    shown = await bench.ask("GET", f"/admin/agents/{{tenant}}/runs/{run['run_id']}")
    assert (shown["input"]["input"], shown["status"]) == (text_of(size), "completed")


async def _run_metadata(bench: Bench, size: int) -> None:
    metadata = {"a": text_of(size - len('{"a":""}'))}
    run = await _ran(bench, {"input": "Hello.", "metadata": metadata})
    shown = await bench.ask("GET", f"/admin/agents/{{tenant}}/runs/{run['run_id']}")
    assert shown["input"]["metadata"] == metadata


async def _titled(bench: Bench, size: int) -> None:
    place = "/v1/agents/{tenant}/reader/instances/desk"
    await bench.ask("PATCH", place, {"title": "語" * size})
    [shown] = (await bench.ask("GET", "/v1/agents/{tenant}/instances"))["instances"]
    assert shown["title"] == "語" * size


async def _conversation(bench: Bench) -> None:
    await _ran(bench, {"input": "Hello.", "instance_id": "desk"})


async def _cursor(bench: Bench, size: int) -> None:
    """A cursor is a JSON list; this one is of the right form, and longer than any that was given out."""
    cursor = json.dumps([1, "x" * (size - len(json.dumps([1, ""])))]).replace('"', "%22")
    await bench.ask("GET", f"/admin/errors?cursor={cursor}")


LIMITS = (
    ServedLimit(constant="retain.ledgers.pages.MAX_CURSOR_CHARACTERS", attempt=_cursor, code="invalid_cursor"),
    ServedLimit(
        constant="retain.http.MAX_BODY_BYTES",
        what="with a length",
        attempt=partial(_body, whole=True),
        code="body_too_large",
    ),
    ServedLimit(
        constant="retain.http.MAX_BODY_BYTES",
        what="in pieces",
        attempt=partial(_body, whole=False),
        code="body_too_large",
    ),
    ServedLimit(
        constant=_LIMITS + "MAX_CONTENT_BYTES",
        what="of a store",
        attempt=lambda bench, size: _stored(bench, content=text_of(size)),
        code="content_too_large",
    ),
    ServedLimit(
        constant=_LIMITS + "MAX_CONTENT_BYTES",
        what="of an edit",
        prepare=_one,
        attempt=lambda bench, size: _edited(bench, content=text_of(size, "😀")),
        code="content_too_large",
    ),
    ServedLimit(
        constant=_LIMITS + "MAX_METADATA_BYTES",
        what="of a store",
        attempt=lambda bench, size: _stored(bench, metadata={"a": text_of(size - len('{"a":""}'))}),
        code="metadata_too_large",
    ),
    ServedLimit(
        constant=_LIMITS + "MAX_METADATA_BYTES",
        what="of an edit",
        prepare=_one,
        attempt=lambda bench, size: _edited(bench, metadata={"a": text_of(size - len('{"a":""}'), "😀")}),
        code="metadata_too_large",
    ),
    ServedLimit(
        constant=_LIMITS + "MAX_PART_BYTES",
        what="of a store",
        attempt=lambda bench, size: _stored(bench, subject=text_of(size), predicate=text_of(size, "é")),
        code="invalid_subject",
    ),
    ServedLimit(
        constant=_LIMITS + "END_OF_NUMBERS",
        what="of a store",
        attempt=lambda bench, end: _stored(bench, expires_at_ms=end - 1),
        code="invalid_expires_at_ms",
    ),
    ServedLimit(constant=None, what="memories of a seed", at=100, attempt=_seeded, code="invalid_body"),
    ServedLimit(
        constant="retain.memory.recall.query.MAX_QUERY_BYTES", prepare=_one, attempt=_asked, code="query_too_large"
    ),
    ServedLimit(
        constant="retain.memory.recall.query.MAX_CONTEXT_TURNS",
        prepare=_one,
        attempt=_in_conversation,
        code="context_too_large",
    ),
    ServedLimit(
        constant="retain.memory.recall.query.MAX_CONTEXT_BYTES", prepare=_one, attempt=_after, code="context_too_large"
    ),
    ServedLimit(constant="retain.memory.filters.MAX_FILTER_BYTES", attempt=_filtered, code="filter_too_large"),
    ServedLimit(constant="retain.memory.filters.MAX_CONDITIONS", attempt=_conditions, code="filter_too_large"),
    ServedLimit(constant="retain.memory.filters.MAX_LISTED", attempt=_listed, code="invalid_filter"),
    ServedLimit(constant="retain.memory.filters.MAX_DEPTH", attempt=_joined, code="invalid_filter"),
    ServedLimit(
        constant="retain.memory.recall.sources.statistics.MAX_SCOPES",
        prepare=_scopes,
        attempt=_over_scopes,
        code="too_many_scopes",
    ),
    ServedLimit(constant="retain.memory.recall.recall.MAX_TOP_K", prepare=_sixty, attempt=_top_k, code="invalid_top_k"),
    ServedLimit(
        constant="retain.memory.recall.recall.MAX_RUNNERS_UP",
        prepare=_sixty,
        attempt=_runners_up,
        code="invalid_runners_up",
    ),
    ServedLimit(
        constant="retain.routing.queries.MAX_LIMIT", prepare=_two_hundred_and_one, attempt=_page, code="invalid_limit"
    ),
    ServedLimit(constant="retain.memory.records.similar.MAX_GROUPS", attempt=_similar, code="invalid_limit"),
    ServedLimit(
        constant="retain.agents.calls.asked.MAX_INPUT_BYTES", agent=_AGENT, attempt=_input, code="input_too_large"
    ),
    ServedLimit(
        constant="retain.agents.calls.asked.MAX_METADATA_BYTES",
        agent=_AGENT,
        attempt=_run_metadata,
        code="metadata_too_large",
    ),
    ServedLimit(
        constant="retain.memory.conversations.reading.MAX_TITLE",
        agent=_AGENT,
        prepare=_conversation,
        attempt=_titled,
        code="invalid_body",
    ),
)
