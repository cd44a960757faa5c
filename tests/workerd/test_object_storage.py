"""A Durable Object's SQLite and alarm, where only the platform can show what it does."""

from __future__ import annotations

import time

import pytest

from tests.e2e.waiting import eventually
from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd

DEADLINE_S = 10


def test_writes_without_an_await_between_them_commit_together(worker: TestWorker) -> None:
    worker.object_probe("whole", "interrupted", end="return")
    assert worker.object_probe("whole", "notes") == ["before the await", "after it", "last"]


def test_an_object_that_is_ended_between_two_writes_keeps_neither(worker: TestWorker) -> None:
    with pytest.raises(AssertionError, match="planned"):
        worker.object_probe("aborted", "interrupted", end="abort")
    assert worker.object_probe("aborted", "notes") == ["before the await"]


def test_an_exception_rolls_no_write_back(worker: TestWorker) -> None:
    with pytest.raises(AssertionError, match="planned"):
        worker.object_probe("raised", "interrupted", end="raise")
    assert worker.object_probe("raised", "notes") == ["before the await", "after it"]


def test_an_alarm_has_no_time_until_it_is_set_and_a_new_time_replaces_the_old(worker: TestWorker) -> None:
    late = 4_000_000_000_000
    seen = worker.object_probe("alarm", "alarm", times_ms=[late, late - 1000, late + 1000])
    assert seen == [None, late, late - 1000, late + 1000]


def test_an_alarm_that_is_due_fires_once(worker: TestWorker) -> None:
    worker.object_probe("soon", "alarm_soon")
    deadline = time.monotonic() + DEADLINE_S
    while not worker.object_probe("soon", "notes") and time.monotonic() < deadline:
        pass
    assert worker.object_probe("soon", "notes") == ["alarm"]
    assert worker.object_probe("soon", "alarm", times_ms=[]) == [None]


def test_an_alarm_that_fails_is_repeated_and_is_given_how_often(worker: TestWorker) -> None:
    worker.object_probe("fails", "alarm_soon", fails=True)
    eventually(lambda: worker.object_probe("fails", "notes"), lambda notes: notes == ["fail at first", "repeated 1"])
