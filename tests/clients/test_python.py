"""The Python client against Retain on real workerd."""

from __future__ import annotations

from datetime import date
from typing import Any

import httpx
import pytest

from tests.clients.conftest import Application
from tests.e2e.waiting import eventually

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
        spent = eventually(
            lambda: list(retain.runs.costs(agent_type="sdr", since=date(2026, 1, 1), limit=1)),
            lambda found: [one.runs for one in found] == [2],
        )
        assert spent[0].input_tokens > 0
        assert list(retain.runs.costs(until=date(2026, 1, 1))) == []
        assert list(retain.runs.costs(purpose="judge")) == []
        with pytest.raises(library.RetainError) as refused:
            retain.memories.get("01M8WX6V000000000000000000")
        assert (refused.value.code, refused.value.status) == ("no_such_memory", 404)


def test_a_file_is_uploaded_once_named_by_a_run_downloaded_and_deleted(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        notes = retain.attachments.upload("Grüße".encode(), name="notes.txt", user="ann")
        assert (notes.media_type, notes.bytes_, notes.user_id) == ("text/plain", 7, "ann")
        assert retain.attachments.upload("Grüße".encode(), name="notes.txt", user="ann").id == notes.id
        small = {"data": "YQ==", "media_type": "text/plain"}
        run = retain.runs.start("sdr", "hello", instance_id="desk", user="ann", attachments=[notes.id, small])
        assert run.status == "completed"
        stream = retain.runs.stream("sdr", "hello", instance_id="desk", user="ann", attachments=[notes.id])
        assert [event.name for event in stream][-1] == "run.completed"
        assert retain.attachments.download(notes.id).decode() == "Grüße"
        assert [one.name for one in retain.attachments.list(limit=1)] == ["file.txt", "notes.txt"]
        with pytest.raises(library.RetainError) as refused:
            retain.runs.start("sdr", "hello", user="bob", attachments=[notes.id])
        assert refused.value.code == "no_such_attachment"
        retain.attachments.delete(notes.id)
        with pytest.raises(library.RetainError) as gone:
            retain.attachments.get(notes.id)
        assert gone.value.code == "no_such_attachment"


def test_a_run_in_the_background_is_waited_for(api: httpx.Client, library: Any, application: Application) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        begun = retain.runs.start("sdr", "hello", instance_id="desk", background=True)
        assert begun.status in ("running", "completed")
        ended = retain.runs.wait("sdr", "desk", begun.run_id, poll_s=0.1)
        assert (ended.status, ended.run_id) == ("completed", begun.run_id)


def test_a_person_s_answer_is_given_and_a_run_is_cancelled(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        asked = retain.runs.start("clerk", "refund AB-1", instance_id="desk")
        assert (asked.status, asked.waiting_for.tool) == ("waiting", "issue_refund")
        waiting = retain.runs.wait("clerk", "desk", asked.run_id, timeout_s=5)
        assert waiting.waiting_for.call == asked.waiting_for.call
        retain.runs.approve("clerk", "desk", asked.run_id, asked.waiting_for.call, reason="because")
        assert retain.runs.wait("clerk", "desk", asked.run_id, poll_s=0.1).output == "It was refunded."

        asked = retain.runs.start("clerk", "refund AB-1", instance_id="desk")
        retain.runs.reject("clerk", "desk", asked.run_id, asked.waiting_for.call)
        assert retain.runs.wait("clerk", "desk", asked.run_id, poll_s=0.1).output == "It was rejected."

        asked = retain.runs.start("clerk", "refund AB-1", instance_id="desk")
        retain.runs.cancel("clerk", "desk", asked.run_id, reason="the customer called")
        ended = retain.runs.wait("clerk", "desk", asked.run_id, poll_s=0.1)
        assert (ended.status, ended.error.message) == ("cancelled", "the customer called")

        asked = retain.runs.retry("clerk", "desk", asked.run_id)
        asked = retain.runs.wait("clerk", "desk", asked.run_id, poll_s=0.1)
        retain.runs.approve("clerk", "desk", asked.run_id, asked.waiting_for.call)
        ended = retain.runs.wait("clerk", "desk", asked.run_id, poll_s=0.1)
        assert (ended.output, ended.steps) == ("It was refunded.", 2)
        again = retain.runs.fork("clerk", "desk", ended.run_id, 1)
        assert retain.runs.wait("clerk", "desk", again.run_id, poll_s=0.1).output == "It was refunded."


def test_conversations_are_listed_read_renamed_and_deleted(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        for name in ("desk", "door", "shop"):
            retain.runs.start("sdr", f"hello from {name}", instance_id=name, user="ann")
        conversations = eventually(lambda: list(retain.conversations.list(limit=2)), lambda found: len(found) == 3)
        assert {one.instance_id for one in conversations} == {"desk", "door", "shop"}
        assert [len(page) for page in retain.conversations.list(user="ann", limit=2).pages()] == [2, 1]
        messages = list(retain.conversations.messages("sdr", "desk", order="asc", limit=1))
        assert (messages[0].role, messages[0].content) == ("user", "hello from desk")
        assert retain.conversations.rename("sdr", "desk", "Ann's question").title == "Ann's question"
        assert retain.conversations.get("sdr", "desk").conversation.title == "Ann's question"
        retain.conversations.delete("sdr", "desk")
        with pytest.raises(library.RetainError) as gone:
            retain.conversations.get("sdr", "desk")
        assert gone.value.status == 404
        assert "sdr" in [agent.agent_type for agent in retain.agents.list(limit=1)]


def test_agents_are_checked_defined_run_rolled_back_and_deleted(
    api: httpx.Client, library: Any, application: Application
) -> None:
    guide = {
        "description": "Answers guests.",
        "instructions": "Be brief.",
        "model": {"script": "sdr"},
    }
    kind = {**guide, "instructions": "Be kind."}
    with library.Retain(application.url, application.key, application.tenant) as retain:
        assert retain.agents.get("sdr").definition is None
        checked = retain.agents.check("guide", {**guide, "delegates": ["nobody"]})
        assert (checked.valid, [problem.pointer for problem in checked.problems]) == (False, ["/delegates/0"])
        assert retain.agents.check("guide", guide).valid
        assert retain.agents.define("guide", guide, if_match=0).version == 1
        assert retain.runs.start("guide", "hello").status == "completed"
        changed = retain.agents.define("guide", kind, if_match=1)
        assert (changed.version, changed.added) == (2, True)
        with pytest.raises(library.RetainError) as refused:
            retain.agents.define("guide", guide, if_match=1)
        assert refused.value.code == "agent_changed"
        with pytest.raises(library.RetainError) as refused:
            retain.agents.roll_back("guide", 1, if_match=1)
        assert refused.value.code == "agent_changed"
        with pytest.raises(library.RetainError) as refused:
            retain.agents.delete("guide", if_match=1)
        assert refused.value.code == "agent_changed"
        assert retain.agents.get("guide").definition["instructions"] == "Be kind."
        assert retain.agents.roll_back("guide", 1).restored_from == 1
        assert retain.agents.version("guide", 2).definition["instructions"] == "Be kind."
        assert "guide" in [agent.agent_type for agent in retain.agents.list()]
        retain.agents.delete("guide")
        versions = list(retain.agents.versions("guide", limit=2))
        assert [(one.version, one.deleted) for one in versions] == [(4, True), (3, False), (2, False), (1, False)]
        with pytest.raises(library.RetainError) as gone:
            retain.agents.get("guide")
        assert gone.value.code == "agent_deleted"


def test_memories_are_edited_filtered_and_deleted(api: httpx.Client, library: Any, application: Application) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        stored = retain.memories.store(
            "Ann drinks tea.", user_id="ann", kind="fact", metadata={"source": "crm"}, importance=0.9
        )
        retain.memories.store("Ann lives in Porto.", user_id="ann")
        assert not retain.memories.store("Ann drinks tea.", user_id="ann").created
        filtered = list(retain.memories.list(user_id="ann", filter={"source": "crm"}))
        assert [memory.id for memory in filtered] == [stored.id]
        assert len(list(retain.memories.list(user_id="ann", limit=1))) == 2
        assert retain.memories.update(stored.id, content="Ann drinks coffee.").content == "Ann drinks coffee."
        shown = retain.memories.get(stored.id)
        assert (shown.content, len(shown.events)) == ("Ann drinks coffee.", 2)
        assert retain.memories.update(stored.id, importance=0.8, if_match=shown.last_event_id).importance == 0.8
        with pytest.raises(library.RetainError) as late:
            retain.memories.update(stored.id, importance=0.1, if_match=shown.last_event_id)
        assert late.value.code == "memory_changed"
        retain.memories.delete(stored.id)
        assert [memory.content for memory in retain.memories.list(user_id="ann")] == ["Ann lives in Porto."]

        messages = [{"speaker": "Ann", "content": "I live in Lisbon.", "at_ms": 1_700_000_000_000}]
        job = retain.memories.ingest("mail-1", messages, user_id="ann")
        assert (job.received, job.stored) == (1, 1)
        assert retain.memories.ingest_job(job.job_id).state == "completed"


def test_users_have_profiles_exports_and_an_end_and_their_browsers_tokens(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        retain.users.put("ann", name="Ann", locale="en-GB")
        retain.memories.store("Ann drinks tea.", user_id="ann")
        assert retain.users.get("ann").name == "Ann"
        assert [user.id for user in retain.users.list()] == ["ann"]
        token = retain.tokens.create("ann", agent_type="sdr", minutes=5)
        with library.Retain(application.url, token.token, application.tenant) as browser:
            events = browser.runs.stream("sdr", "hello", instance_id="desk")
            assert [event.name for event in events][-1] == "run.completed"
            assert events.instance_id.endswith("desk")
            with pytest.raises(library.RetainError) as refused:
                browser.memories.recall("tea")
            assert (refused.value.code, refused.value.status) == ("token_not_allowed", 403)
        exported = list(retain.users.export("ann"))
        assert any("Ann drinks tea." in str(line) for line in exported)
        erasure = retain.users.forget("ann")
        assert erasure.receipt.state == "completed"
        assert list(retain.memories.list(user_id="ann")) == []


def test_webhooks_are_created_rotated_listed_and_deleted(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        created = retain.webhooks.create("https://shop.example/hooks", events=["run.failed"])
        assert retain.webhooks.rotate(created.webhook_id).secret != created.secret
        assert [webhook.url for webhook in retain.webhooks.list(limit=1)] == ["https://shop.example/hooks"]
        assert list(retain.webhooks.deliveries(created.webhook_id, status="failed")) == []
        with pytest.raises(library.RetainError):
            retain.webhooks.replay(created.webhook_id, "msg_x")
        retain.webhooks.delete(created.webhook_id)
        assert list(retain.webhooks.list()) == []


def test_schedules_are_created_listed_paused_resumed_and_deleted(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        daily = {"cron": "30 8 * * MON-FRI", "timezone": "Europe/Zurich", "user": "ann", "idempotency_key": "daily"}
        made = retain.schedules.create("sdr", "Who answered?", **daily)
        assert retain.schedules.create("sdr", "Who answered?", **daily).schedule_id == made.schedule_id
        assert retain.schedules.pause(made.schedule_id).next_at_ms is None
        assert [one.user_id for one in retain.schedules.list(user_id="ann", state="paused", limit=1)] == ["ann"]
        assert retain.schedules.resume(made.schedule_id) == retain.schedules.get(made.schedule_id)
        retain.schedules.delete(made.schedule_id)
        assert list(retain.schedules.list()) == []
        with pytest.raises(library.RetainError):
            retain.schedules.create("sdr", "Who answered?", cron="61 * * * *")


def test_the_open_runs_of_an_agent_are_cancelled_together(
    api: httpx.Client, library: Any, application: Application
) -> None:
    with library.Retain(application.url, application.key, application.tenant) as retain:
        waiting = {retain.runs.start("clerk", f"refund AB-{number}").run_id for number in range(3)}
        retain.runs.start("sdr", "hello")
        cancelled = retain.runs.cancel_all(agent_type="clerk", reason="the desk is closed")
        assert {run.run_id for run in cancelled} == waiting
        assert {run.status for run in cancelled} == {"cancelled"}
        assert retain.runs.cancel_all(agent_type="clerk") == []
