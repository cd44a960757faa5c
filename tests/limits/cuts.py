"""Limits beyond which nothing is refused: a text is cut, a list is divided, a number is not believed."""

from __future__ import annotations

from collections.abc import Sequence

from retain.agents.runs.compaction import _terms
from retain.limits.vectorize import delete_calls
from retain.log import redact, redact_text
from retain.memory.records.object_keys import key_of
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, ToolCall
from retain.models.embedders import openai, workers_ai
from retain.models.embedders.batches import batches
from retain.models.provider_message import without_secrets
from retain.models.providers.openai import counted
from retain.models.providers.tool_calls import usable
from retain.roles.subjects import subjects_of
from tests.limits.limit import Limit


def _whole(text: str, kept: str) -> None:
    """Raise ValueError for a text that was cut; of one that was cut, the beginning is kept."""
    if kept != text:
        assert kept[:40] == text[:40]
        raise ValueError


def _together(texts: Sequence[str], max_texts: int, max_characters: int) -> None:
    groups = batches(texts, max_texts=max_texts, max_characters=max_characters)
    assert [place for group in groups for place in group] == list(range(len(texts)))
    if len(groups) > 1:
        raise ValueError


def _deep(levels: int) -> None:
    value: object = "text"
    for _ in range(levels):
        value = [value]
    if "too deep" in str(redact(value)):
        raise ValueError


def _believed(tokens: int) -> None:
    if counted({"n": tokens}, "n") != tokens:
        raise ValueError


def _tool_name(size: int) -> None:
    reply = ChatReply("", (ToolCall("id", "t" * size, {}),))
    [call] = usable(reply, ChatRequest([ChatMessage("user", "Hello.")])).tool_calls
    _whole("t" * size, call.name)


def _subjects(count: int) -> None:
    found = subjects_of({"email": "a@b.c", "custom": {"groups": [f"g{number}" for number in range(count - 2)]}})
    if len(found) < count:
        raise ValueError


def _deleted_per_call(count: int) -> None:
    ids = [f"id-{number}" for number in range(count)]
    calls = delete_calls(ids)
    assert [one for call in calls for one in call] == ids
    if len(calls) > 1:
        raise ValueError


def _term(size: int) -> None:
    if not _terms([f"{'x' * (size - 1)}1"]):
        raise ValueError


LIMITS = (
    Limit(
        constant="retain.log.MAX_TEXT_CHARACTERS",
        attempt=lambda n: _whole("語 " * (n // 2) + "x" * (n % 2), redact_text("語 " * (n // 2) + "x" * (n % 2))),
        code=None,
    ),
    Limit(constant="retain.log.MAX_DEPTH", attempt=_deep, code=None),
    Limit(
        constant="retain.memory.records.object_keys.MAX_KEY_CHARACTERS",
        attempt=lambda n: _whole("k" * n, key_of("k" * n)),
        code=None,
    ),
    Limit(
        constant="retain.models.provider_message.MAX_CHARACTERS",
        attempt=lambda n: _whole("m" * n, without_secrets("m" * n, "secret-key")),
        code=None,
    ),
    Limit(constant="retain.models.providers.openai.MAX_TOKENS", attempt=_believed, code=None),
    Limit(constant="retain.models.providers.tool_calls._MAX_NAME", attempt=_tool_name, code=None),
    Limit(
        constant="retain.models.embedders.openai.MAX_TEXTS",
        attempt=lambda n: _together(["a"] * n, openai.MAX_TEXTS, openai.MAX_CHARACTERS),
        code=None,
    ),
    Limit(
        constant="retain.models.embedders.openai.MAX_CHARACTERS",
        attempt=lambda n: _together(["a" * (n - 5), "b" * 5], openai.MAX_TEXTS, openai.MAX_CHARACTERS),
        code=None,
    ),
    Limit(
        constant="retain.models.embedders.workers_ai.MAX_TEXTS",
        attempt=lambda n: _together(["a"] * n, workers_ai.MAX_TEXTS, workers_ai.MAX_CHARACTERS),
        code=None,
    ),
    Limit(
        constant="retain.models.embedders.workers_ai.MAX_CHARACTERS",
        attempt=lambda n: _together(["a" * (n - 5), "b" * 5], workers_ai.MAX_TEXTS, workers_ai.MAX_CHARACTERS),
        code=None,
    ),
    Limit(constant="retain.roles.subjects.MAX_SUBJECTS", attempt=_subjects, code=None),
    Limit(constant="retain.limits.vectorize.DELETE_IDS_PER_CALL", attempt=_deleted_per_call, code=None),
    Limit(constant="retain.agents.runs.compaction._MAX_TERM", attempt=_term, code=None),
)
