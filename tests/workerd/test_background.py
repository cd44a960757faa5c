"""Work handed to waitUntil is not lost, in the Worker and in a Durable Object: its row is read back from D1."""

from __future__ import annotations

import time

import pytest

from tests.workerd.server import TestWorker

pytestmark = pytest.mark.workerd

DEADLINE_S = 10


def _appears(worker: TestWorker, marker: str) -> bool:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        if worker.probe("marked", marker=marker):
            return True
    return False


def test_work_that_outlives_the_answer_of_the_worker_is_done(worker: TestWorker) -> None:
    worker.probe("background", marker="worker")
    assert _appears(worker, "worker")


def test_work_that_outlives_the_answer_of_a_durable_object_is_done(worker: TestWorker) -> None:
    worker.object_probe("background", "background", marker="object")
    assert _appears(worker, "object")


@pytest.mark.parametrize("kind", ["retain", "other"])
def test_failing_work_is_logged_and_harms_neither_its_request_nor_the_next(worker: TestWorker, kind: str) -> None:
    logged = worker.log.read_text().count("background work failed")
    worker.probe("failing_background", kind=kind)
    worker.probe("background", marker=f"after {kind}")
    assert _appears(worker, f"after {kind}")
    assert worker.log.read_text().count("background work failed") == logged + 1
