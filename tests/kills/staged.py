"""What is added to a staged copy of the Worker: points before and after each call that changes something outside.

A point knows whose work it interrupts: a request names its work in a header, and an instance or a writer of a tenant
works for the tenant.
"""

from __future__ import annotations

from pathlib import Path

from tests.kills.named import READS
from tests.support.staged_modules import add_to

_MODULE = '''
"""Asks the driver of the tests at every fault point."""

import contextlib
import re

import js
from retain.log import bind, bound

_WRITES = re.compile(r"\\s*(INSERT(?: OR \\w+)? INTO|UPDATE|DELETE FROM)\\s+(\\w+)")


async def at(name, tables=()):
    await js.fetch(f"{origin}/{name}?work={bound('tenant_id') or ''}&tables={','.join(tables)}")


def _tables(kind, method, arguments):
    if kind != "d1":
        return []
    statements = arguments[0] if method == "batch" else [(arguments[0], ())]
    written = [found[2] for sql, _ in statements if (found := _WRITES.match(sql))]
    return [table for table in written if table != "acting"]  # who makes the change: it is first in every transaction


def _named(kind, method, arguments, tables):
    if kind == "d1":
        return f"d1.{tables[0]}" if tables else None
    if kind == "call":
        called = {"/chat/completions": "call.model", "/hooks/": "call.webhook"}
        return next((name for part, name in called.items() if part in arguments[1]), "call.tool")
    if kind in ("instance", "writer"):
        return None if arguments[1] in {reads} else f"{kind}.{arguments[1]}"
    return f"{kind}.{method}"


def around(kind, method, inner):
    async def wrapped(*arguments, **options):
        given = arguments if kind == "call" else arguments[1:]
        tables = _tables(kind, method, given)
        name = _named(kind, method, given, tables)
        if name is None:
            return await inner(*arguments, **options)
        await at(f"{name}:before", tables)
        answer = await inner(*arguments, **options)
        await at(f"{name}:after", tables)
        return answer

    return wrapped


def around_methods(kind, owner, *methods):
    for method in methods:
        setattr(owner, method, around(kind, method, getattr(owner, method)))


def around_stream(inner):
    @contextlib.asynccontextmanager
    async def wrapped(*arguments, **options):
        await at("call.stream:before")
        async with inner(*arguments, **options) as answer:
            yield answer
            await at("call.stream:after")

    return wrapped


def of_request(inner):
    async def wrapped(self, request):
        work = request.js_object.headers.get("x-work")
        with bind(tenant_id=work if isinstance(work, str) else ""):
            return await inner(self, request)

    return wrapped


def of_schedule(inner):
    async def wrapped(*arguments):
        with bind(tenant_id="schedule"):
            return await inner(*arguments)

    return wrapped
'''
WRAPPED = {
    "databases.py": 'around_methods("d1", D1, "run", "batch")',
    "stores.py": 'around_methods("kv", WorkersKv, "put", "delete")\naround_methods("r2", R2, "put", "put_stream", "delete")',
    "vectorize.py": 'around_methods("vectors", Vectorize, "upsert", "delete_by_ids")',
    "services.py": 'around_methods("instance", DurableInstances, "call")\naround_methods("writer", DurableWriters, "call")',
    "web.py": 'fetch = around("call", "fetch", fetch)\nfetch_stream = around_stream(fetch_stream)',
}
"""What is added to each module of the adapters."""
_IMPORTED = "\n\nfrom adapters.fault_points import around, around_methods, around_stream\n\n"
_ENTRY = """

from adapters.fault_points import of_request, of_schedule

Default.fetch = of_request(Default.fetch)
Default.scheduled = of_schedule(Default.scheduled)
"""
SCHEDULE = "schedule"
"""The work of scheduled events, which no request names."""


def add_points(build: Path, origin: str) -> None:
    """Add the points to a staged copy of the Worker. origin: of the server that they ask."""
    adapters = build / "adapters"
    (adapters / "fault_points.py").write_text(
        _MODULE.replace("{origin}", origin).replace("{reads}", repr(sorted(READS))).lstrip()
    )
    for name, wraps in WRAPPED.items():
        add_to(adapters / name, f"{_IMPORTED}{wraps}\n")
    add_to(build / "entry.py", _ENTRY)
