"""Which requests the Python client repeats, and after which pause."""

from __future__ import annotations

from typing import Any

import pytest

from tools.openapi import document

IDEMPOTENT = frozenset(
    {
        *("cancel_run", "cancel_runs", "resume_run", "record_run_outcome", "cancel_evaluation", "create_token"),
        *(
            "create_attachment",
            "create_memory",
            "seed_memories",
            "recall_memories",
            "ingest_conversation",
            "import_memories",
        ),
        *("start_reindex", "verify_memories", "erase_memories", "reseal_items", "reseal_webhooks"),
        *("replay_error", "dismiss_error", "replay_delivery", "check_agent"),
    }
)
"""POSTs that change nothing a second time, or send what the receiver knows by its id. Others are not repeated."""


@pytest.fixture
def retries(library: Any) -> Any:
    return library.retries


def test_only_idempotent_posts_of_the_document_are_repeated_without_a_key(retries: Any) -> None:
    posts = {methods["post"]["operationId"]: path for path, methods in document()["paths"].items() if "post" in methods}
    assert {name for name, path in posts.items() if retries.repeatable("POST", path, has_key=False)} == IDEMPOTENT
    assert all(retries.repeatable("POST", path, has_key=True) for path in posts.values())
    assert retries.repeatable("DELETE", "/v1/anything", has_key=False)


def test_pauses_double_up_to_the_longest_and_end_with_the_attempts(retries: Any) -> None:
    policy = retries.Retries(attempts=6, first_pause_s=1, longest_pause_s=5)
    for attempt, most in ((1, 1), (2, 2), (3, 4), (4, 5), (5, 5)):
        for _ in range(20):
            assert most / 2 <= policy.after_answer(attempt, 503, None, again=True) <= most
    assert policy.after_answer(6, 503, None, again=True) is None


@pytest.mark.parametrize(
    ("status", "retry_after_s", "again", "repeated"),
    [
        pytest.param(429, None, False, True, id="refused before anything was done"),
        pytest.param(503, None, True, True, id="unavailable, and idempotent"),
        pytest.param(502, None, True, True, id="nobody answered, and idempotent"),
        pytest.param(504, None, True, True, id="nobody answered in time, and idempotent"),
        pytest.param(503, None, False, False, id="unavailable, and perhaps carried out"),
        pytest.param(429, 31.0, True, False, id="asked to wait longer than the longest pause"),
        pytest.param(500, None, True, False, id="an error of the server"),
        pytest.param(409, None, True, False, id="a conflict"),
        pytest.param(200, None, True, False, id="an answer"),
    ],
)
def test_what_an_answer_leads_to(
    retries: Any, status: int, retry_after_s: float | None, again: bool, repeated: bool
) -> None:
    pause = retries.Retries().after_answer(1, status, retry_after_s, again=again)
    assert (pause is not None) is repeated


def test_the_server_s_pause_counts_if_it_is_longer(retries: Any) -> None:
    assert retries.Retries().after_answer(1, 429, 20.0, again=False) == 20.0


def test_a_failure_before_the_request_was_sent_is_repeated_in_any_case(retries: Any) -> None:
    policy = retries.Retries()
    assert policy.after_failure(1, sent=False, again=False) is not None
    assert policy.after_failure(1, sent=True, again=False) is None
    assert policy.after_failure(1, sent=True, again=True) is not None
