"""Limits of what is written in bulk, and not as memories alone: ingest, import, items, datasets."""

from __future__ import annotations

import json
from typing import Any

from retain.limits.storage import MAX_QUERIES
from tests.limits.limit import TENANT, Bench, ServedLimit, text_of

_INGEST = "/admin/tenants/{tenant}/memories/ingest"
_ITEM = "/admin/tenants/{tenant}/items/shop/session/{kind}/it"
_DATASET = "/admin/tenants/{tenant}/evals/datasets"


def _message(number: int, **fields: Any) -> dict[str, Any]:
    return {"id": f"m{number}", "speaker": "Ada", "content": f"Fact number {number} is known.", **fields}


async def _ingested(bench: Bench, *messages: dict[str, Any], room: int = 0) -> Any:
    """Ingest messages, in a body of `room` bytes if it is larger, and return the job when it is done."""
    body = {"conversation": "c", "agent_type": "sdr", "messages": list(messages)}
    text = json.dumps(body, ensure_ascii=False).encode()
    sent = [text]
    if room:
        space = bytes(b" " * 65_536)
        whole, rest = divmod(room - len(text), len(space))
        sent += [space] * whole + [space[:rest]]
    job = await bench.ask("POST", _INGEST, pieces=sent)
    await bench.worker.settled()
    done = await bench.ask("GET", f"{_INGEST}/{job['job_id']}")
    await bench.worker.settled()
    assert done["state"] == "completed", done
    return done


async def _messages(bench: Bench, count: int) -> None:
    job = await _ingested(bench, *(_message(number) for number in range(count)))
    [stored] = await bench.worker.rows("SELECT COUNT(*) AS n FROM memory_records WHERE conversation = 'c'")
    assert (job["rejected"], stored["n"]) == (0, count)


async def _large_message(bench: Bench, size: int) -> None:
    """A message that is too large is rejected, and named; the others are stored."""
    job = await _ingested(bench, _message(1, content=text_of(size)), _message(2))
    contents = {row["content"] for row in await bench.worker.rows("SELECT content FROM memory_records")}
    assert _message(2)["content"] in contents
    if job["rejected"]:
        [rejected] = job["rejections"]
        assert (rejected["index"], rejected["code"]) == (0, "content_too_large")
        raise ValueError
    assert text_of(size) in contents


async def _late_message(bench: Bench, at_ms: int) -> None:
    job = await _ingested(bench, _message(1, at_ms=at_ms), _message(2))
    if job["rejected"]:
        assert [one["code"] for one in job["rejections"]] == ["invalid_at_ms"]
        raise ValueError


async def _imported(bench: Bench, text: str) -> Any:
    return await bench.ask(
        "POST", "/admin/tenants/{tenant}/import", body=text.encode(), headers={"content-type": "application/x-ndjson"}
    )


async def _exported_lines(bench: Bench) -> list[str]:
    text: str = await bench.ask("GET", "/admin/tenants/{tenant}/export")
    return text.splitlines()


async def _import_bytes(bench: Bench, size: int) -> None:
    [line] = [line for line in await _exported_lines(bench) if '"page"' in line][:1]
    bench.begin()
    await _imported(bench, line + " " * (size - len(line.encode()) - 1) + "\n")


async def _import_lines(bench: Bench, count: int) -> None:
    await _imported(bench, "\n".join(_user_line(number) for number in range(count)))
    [users] = await bench.worker.rows("SELECT COUNT(*) AS n FROM users")
    assert users["n"] == count


async def _import_items(bench: Bench, count: int) -> None:
    before = bench.worker.db.trips
    await _imported(bench, "\n".join(_item_line(number) for number in range(count)))
    assert bench.worker.db.trips - before < MAX_QUERIES // 2
    [items] = await bench.worker.rows("SELECT COUNT(*) AS n FROM memory_items")
    assert items["n"] == count


def _item_line(number: int) -> str:
    item = {"key": f"shop:{TENANT}:s{number}:cart:c", "value": "v", "sealed": False, "user_id": None}
    line = {"version": 1, "kind": "item", "tenant": TENANT, "owner": None, "at_ms": 1, "item": item}
    return json.dumps({**line, "item": {**item, "expires_at_ms": None}})


def _user_line(number: int) -> str:
    user = {"id": f"u{number}", "name": "語", "locale": None, "timezone": None, "created_at_ms": 1, "last_run_at_ms": 1}
    return json.dumps({"version": 1, "kind": "user", "tenant": TENANT, "user": user})


async def _item(bench: Bench, kind: str, **body: Any) -> None:
    await bench.ask("PUT", _ITEM.replace("{kind}", kind), body)
    found = await bench.ask("GET", _ITEM.replace("{kind}", kind))
    assert found["value"] == body["value"]


async def _hot(bench: Bench, size: int) -> None:
    """A value that is too large for the hot tier is kept, and read from the tier below."""
    value = json.dumps({"a": text_of(size - len('{"a": ""}'))}, ensure_ascii=False)
    put = await bench.ask("PUT", _ITEM.replace("{kind}", "cart"), {"value": value})
    found = await bench.ask("GET", _ITEM.replace("{kind}", "cart"))
    assert found["value"] == value
    if not put["hot_copy"]:
        raise ValueError


async def _dataset(bench: Bench, count: int) -> None:
    cases = [{"id": f"c{number}", "input": "sky", "expected": {"contains": ["sky"]}} for number in range(count)]
    await bench.ask("PUT", f"{_DATASET}/d", {"target": {"agent": "sdr"}, "cases": cases})
    assert (await bench.ask("GET", f"{_DATASET}/d"))["cases"] == cases


async def _fixtures(bench: Bench, count: int) -> None:
    memories = [{"id": f"m{number}", "content": f"Fact number {number}."} for number in range(count)]
    case = {"id": "c", "input": "sky", "memories": memories, "expected": {"contains": ["sky"]}}
    await bench.ask("PUT", f"{_DATASET}/d", {"target": {"agent": "sdr"}, "cases": [case]})
    [kept] = (await bench.ask("GET", f"{_DATASET}/d"))["cases"]
    assert kept["memories"] == memories


async def _datasets(bench: Bench, count: int) -> None:
    case = {"id": "c", "input": "sky", "expected": {"contains": ["sky"]}}
    for number in range(count):
        bench.begin()
        await bench.ask("PUT", f"{_DATASET}/d{number}", {"target": {"agent": "sdr"}, "cases": [case]})
    listed = await bench.ask("GET", f"{_DATASET}?limit=200")
    assert len(listed["datasets"]) == count


LIMITS = (
    ServedLimit(constant="retain.evaluation.dataset.MAX_MEMORIES", attempt=_fixtures, code="invalid_body"),
    ServedLimit(constant="retain.evaluation.datasets.MAX_DATASETS", attempt=_datasets, code="too_many_datasets"),
    ServedLimit(constant="retain.ingest.messages.MAX_MESSAGES", attempt=_messages, code="too_many_messages"),
    ServedLimit(
        constant="retain.admin.resources.ingest.MAX_INGEST_BYTES",
        attempt=lambda bench, size: _ingested(bench, _message(1), room=size),
        code="body_too_large",
    ),
    ServedLimit(constant="retain.ingest.messages.MAX_MESSAGE_BYTES", attempt=_large_message, code=None, writes=True),
    ServedLimit(constant="retain.ingest.messages.MAX_AT_MS", attempt=_late_message, code=None, writes=True),
    ServedLimit(constant="retain.lifecycle.transfer.lines.MAX_BYTES", attempt=_import_bytes, code="body_too_large"),
    ServedLimit(constant="retain.lifecycle.transfer.lines.MAX_LINES", attempt=_import_lines, code="too_many_lines"),
    ServedLimit(
        constant="retain.lifecycle.transfer.lines.MAX_ITEM_LINES", attempt=_import_items, code="too_many_lines"
    ),
    ServedLimit(constant="retain.items.tiers.hot_copies.MAX_HOT_BYTES", attempt=_hot, code=None, writes=True),
    ServedLimit(
        constant="retain.items.placement.MIN_TTL_S",
        attempt=lambda bench, seconds: _item(bench, "cart", value='"a"', ttl_s=seconds),
        code="invalid_ttl",
        least=True,
    ),
    ServedLimit(
        constant="retain.items.placement.MAX_TTL_S",
        attempt=lambda bench, seconds: _item(bench, "preferences", value='"a"', ttl_s=seconds),
        code="invalid_ttl",
    ),
    ServedLimit(
        constant="retain.items.item_checks.MAX_USER_BYTES",
        attempt=lambda bench, size: _item(bench, "preferences", value='"a"', user_id=text_of(size)),
        code="invalid_user",
    ),
    ServedLimit(constant="retain.evaluation.dataset.MAX_CASES", attempt=_dataset, code="invalid_body"),
)
