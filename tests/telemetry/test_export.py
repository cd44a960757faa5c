"""Spans and metrics of runs, as they arrive at a collector."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from retain.host.fetch import HostFetch
from retain.telemetry.collector import Collector
from retain.telemetry.exporter import BATCH, MAX_QUEUED, PAUSE_MS, SpanExporter
from retain.telemetry.otlp import DROPPED, DURATION, TOKENS
from retain.telemetry.spans import Span, span_of
from tests.e2e.puppet import order
from tests.lifecycle.of_users import agents
from tests.lifecycle.world import World
from tests.support.obedient_chat import ObedientChat
from tests.telemetry.collector import TestCollector, attributes, collecting

SECRET = "canary lupussecret"
RUN = "01K0000000000000000000000A"


@pytest.fixture
def collector() -> Iterator[TestCollector]:
    with collecting() as collector:
        yield collector


def exporting(world: World, collector: TestCollector, *, contents: bool = False) -> SpanExporter:
    headers = {"authorization": "Bearer token-of-the-collector"}
    where = Collector(collector.origin, headers, contents)
    world.exporter = SpanExporter(where, HostFetch(), world.clock, world.background, {"service.name": "retain"})
    return world.exporter


def spans(count: int) -> list[Span]:
    return [Span(span_of(RUN, number), "chat m", "chat", "client", 1, 2) for number in range(count)]


async def remember(world: World) -> None:
    """Let an agent store something, recall it, and fail with a tool."""
    calls = (
        ("store_memory", {"content": f"Likes {SECRET}."}),
        ("recall_memory", {"query": SECRET}),
        ("no_such_tool", {"argument": SECRET}),
    )
    await world.run("clerk", order(*calls, say=f"said {SECRET}"), user={"id": "ann"})
    await world.settled()


async def test_a_run_arrives_as_one_trace_of_its_calls_of_model_tools_and_memory(collector: TestCollector) -> None:
    world = World(agents(), lambda _: ObedientChat())
    try:
        exporting(world, collector)
        await remember(world)
    finally:
        world.close()
    by_name = {span.name: span for span in collector.spans}
    [root] = [span for span in collector.spans if not span.parent_span_id]
    assert root.name == "invoke_agent clerk"
    assert {span.trace_id for span in collector.spans} == {root.trace_id}
    assert len({span.span_id for span in collector.spans}) == len(collector.spans)
    assert by_name["execute_tool recall_memory"].parent_span_id == root.span_id
    search, create = by_name["search_memory"], by_name["create_memory"]
    assert search.parent_span_id == by_name["execute_tool recall_memory"].span_id
    assert attributes(search)["gen_ai.operation.name"] == "search_memory"
    assert attributes(search)["gen_ai.memory.store.id"] == "acme"
    assert attributes(search)["gen_ai.memory.record.count"] >= 0
    assert len(attributes(create)["gen_ai.memory.record.id"]) == 26
    failed = by_name["execute_tool no_such_tool"]
    assert (failed.status.code, attributes(failed)["error.type"]) == (2, "no_such_tool")
    chats = [span for span in collector.spans if span.name.startswith("chat")]
    assert len(chats) >= 2
    for chat in chats:
        assert chat.kind == 3
        assert attributes(chat)["gen_ai.response.finish_reasons"]
        assert root.start_time_unix_nano <= chat.start_time_unix_nano <= chat.end_time_unix_nano
    assert collector.resources[0] == {"service.name": "retain"}
    assert collector.headers[0]["authorization"] == "Bearer token-of-the-collector"
    assert not any(SECRET in body or "lupussecret" in body or '"ann"' in body for body in collector.bodies)


async def test_metrics_follow_from_the_spans(collector: TestCollector) -> None:
    world = World(agents(), lambda _: ObedientChat())
    try:
        exporting(world, collector)
        await remember(world)
    finally:
        world.close()
    found = {metric.name: metric for metric in collector.metrics}
    assert set(found) == {DURATION, TOKENS}
    points = found[DURATION].histogram.data_points
    counted = {attributes(point)["gen_ai.operation.name"]: point.count for point in points}
    assert counted["invoke_agent"] == 1
    assert sum(point.count for point in points) == len(collector.spans)
    assert all(sum(point.bucket_counts) == point.count for point in points)
    assert {attributes(point)["gen_ai.token.type"] for point in found[TOKENS].histogram.data_points} == {
        "input",
        "output",
    }
    assert not any("retain.run.id" in attributes(point) for point in points)


async def test_what_was_recalled_for_a_context_is_a_span_and_in_no_histogram_of_durations(
    collector: TestCollector,
) -> None:
    world = World(agents(), lambda _: ObedientChat())
    try:
        exporting(world, collector)
        await world.store(f"Likes {SECRET}.", tenant="acme")
        await world.run("clerk", order(say=SECRET))
        await world.settled()
    finally:
        world.close()
    assert [span.name for span in collector.spans].count("search_memory") == 1
    [durations] = [metric for metric in collector.metrics if metric.name == DURATION]
    counted = {attributes(point)["gen_ai.operation.name"] for point in durations.histogram.data_points}
    assert counted == {"invoke_agent", "chat"}


async def test_texts_are_exported_only_where_the_setting_says_so(collector: TestCollector) -> None:
    world = World(agents(), lambda _: ObedientChat())
    try:
        exporting(world, collector, contents=True)
        await remember(world)
    finally:
        world.close()
    by_name = {span.name: attributes(span) for span in collector.spans}
    assert by_name["search_memory"]["gen_ai.memory.query.text"] == SECRET
    assert SECRET in by_name["execute_tool store_memory"]["gen_ai.tool.call.arguments"]


async def test_what_a_collector_that_is_away_does_not_take_is_dropped_and_counted(collector: TestCollector) -> None:
    world = World(agents(), lambda _: ObedientChat())
    try:
        exporter = exporting(world, collector)
        collector.away = True
        await remember(world)
        assert collector.spans == []
        asked = len(collector.headers)
        exporter.add(spans(3))
        await world.settled()
        assert len(collector.headers) == asked, "for a while nothing is sent"
        collector.away = False
        world.clock.advance(PAUSE_MS)
        exporter.add(spans(1))
        await world.settled()
    finally:
        world.close()
    assert len(collector.spans) == 4
    [lost] = [metric for metric in collector.metrics if metric.name == DROPPED]
    assert lost.sum.data_points[0].as_int > 0


async def test_the_queue_is_bounded_and_sent_in_batches(collector: TestCollector) -> None:
    world = World(agents(), lambda _: ObedientChat())
    try:
        exporter = exporting(world, collector)
        exporter.add(spans(MAX_QUEUED + 7))
        await world.settled()
    finally:
        world.close()
    assert len(collector.spans) == MAX_QUEUED
    assert len([body for body in collector.bodies if "resourceSpans" in body]) == MAX_QUEUED // BATCH
    lost = [metric for metric in collector.metrics if metric.name == DROPPED]
    assert [metric.sum.data_points[0].as_int for metric in lost] == [7]
