"""The Python client against Retain on real workerd."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from tests.clients.conftest import Application

pytestmark = pytest.mark.workerd


def test_an_application_runs_streams_and_recalls(api: httpx.Client, library: Any, application: Application) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        run = retain.runs.start("sdr", "hello", instance_id="desk", user="ann")
        assert (run.status, run.instance_id) == ("completed", "desk")
        events = retain.runs.stream("sdr", "hello", instance_id="desk", user="ann")
        names = [event.name for event in events]
        assert (names[0], names[-1]) == ("run.started", "run.completed")
        assert events.result.run_id == events.run_id
        stored = retain.memories.store("Ann drinks tea.", user_id="ann")
        found = retain.memories.recall("What does Ann drink?", user_id="ann")
        assert [memory.id for memory in found.memories] == [stored.id]
        with pytest.raises(library.RetainError) as refused:
            retain.memories.get("01M8WX6V000000000000000000")
        assert (refused.value.code, refused.value.status) == ("no_such_memory", 404)


def test_a_run_in_the_background_is_waited_for(api: httpx.Client, library: Any, application: Application) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        begun = retain.runs.start("sdr", "hello", instance_id="desk", background=True)
        assert begun.status in ("running", "completed")
        ended = retain.runs.wait("sdr", "desk", begun.run_id, poll_s=0.1)
        assert (ended.status, ended.run_id) == ("completed", begun.run_id)
