"""Connections that break once, between the clients and Retain on real workerd: nothing is lost or done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.clients.conftest import Application
from tests.clients.wire import Wire

pytestmark = pytest.mark.workerd


@pytest.fixture
def wire(application: Application) -> Iterator[Wire]:
    with Wire(application.url) as laid:
        yield laid


def names_of(library: Any, kind: str, wire: Wire, application: Application, **run: str) -> list[str]:
    """Return the names of the events of a run that is streamed over the wire."""
    quick = library.Retries(first_pause_s=0.01)

    async def asynchronously() -> list[str]:
        async with library.AsyncRetain(wire.url, application.key, application.tenant, retries=quick) as retain:
            return [event.name async for event in retain.runs.stream("sdr", "hello", **run)]

    if kind == "AsyncRetain":
        return asyncio.run(asynchronously())
    with library.Retain(wire.url, application.key, application.tenant, retries=quick) as retain:
        return [event.name for event in retain.runs.stream("sdr", "hello", **run)]


def test_a_stream_continues_after_the_event_that_arrived_last(
    api: httpx.Client, library: Any, wire: Wire, application: Application, kind: str
) -> None:
    whole = names_of(library, kind, wire, application)
    assert (wire.cuts, wire.connections) == (0, 1)
    wire.cut_after_event("run.started")
    resumed = names_of(library, kind, wire, application, instance_id="desk")
    assert wire.cuts == 1
    assert [name for name in resumed if name != "text.delta"] == [name for name in whole if name != "text.delta"]
    wire.cut_before_answer()
    assert names_of(library, kind, wire, application, instance_id="desk")[-1] == "run.completed"
    assert wire.cuts == 2
    runs = api.get(f"/admin/agents/{application.tenant}/runs").json()["runs"]
    assert len(runs) == 3


def test_a_run_whose_answer_is_lost_is_not_run_again(
    api: httpx.Client, library: Any, wire: Wire, application: Application
) -> None:
    quick = library.Retries(first_pause_s=0.01)
    with library.Retain(wire.url, application.key, application.tenant, retries=quick) as retain:
        wire.cut_before_answer()
        run = retain.runs.start("sdr", "hello", instance_id="desk")
        assert (wire.cuts, wire.connections) == (1, 2)
        if run.status != "completed":
            run = retain.runs.wait("sdr", "desk", run.run_id)
        assert run.status == "completed"
        assert [listed.run_id for listed in retain.runs.list()] == [run.run_id]


def test_what_must_not_happen_twice_fails_and_says_so(
    api: httpx.Client, library: Any, wire: Wire, application: Application
) -> None:
    from retain_client.api.api.keys_of_applications import create_key, list_keys
    from retain_client.api.models.key_body import KeyBody

    with library.Retain(wire.url, application.key, application.tenant) as retain:
        body = KeyBody.from_dict({"name": "second", "scopes": ["runs"]})
        wire.cut_before_answer()
        with pytest.raises(library.RetainError) as failed:
            create_key.sync(application.tenant, client=retain.api, body=body)
        assert (failed.value.code, failed.value.status) == ("no_answer", None)
        kept = list_keys.sync(application.tenant, client=retain.api)
        assert sorted(key.name for key in kept.keys) == ["second", "shop"]
