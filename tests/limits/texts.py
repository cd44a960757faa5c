"""Limits of texts and values that the code checks without a request: names, configurations, patterns, wire formats."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import closing
from typing import Any

from retain.contracts.documents import prepared
from retain.contracts.messages import database_texts, message_of
from retain.contracts.vectors import VectorDocument
from retain.evaluation.dataset import check_dataset_name
from retain.gateway import keys, target
from retain.gateway.credentials import check_credential
from retain.gateway.entries import Entries
from retain.gateway.provisioning import tool_entry
from retain.gateway.tool_config import parse_tool_config
from retain.gateway.upstream import check_idempotency_key
from retain.host.clock import ManualClock
from retain.host.kv import SqliteKv
from retain.identifiers import (
    check_agent_type,
    check_instance_id,
    check_profile,
    check_segment,
    check_tenant,
    check_user_id,
)
from retain.items.placement import ItemPlacement
from retain.items.rekeying.patterns import load_patterns
from retain.json_text import JsonObject, check_nested, read_json
from retain.lifecycle.terms import Term
from retain.memory.records.limits import SpansLimit
from retain.memory.records.record import NewRecord, Utterance
from retain.models.chat import ChatMessage
from retain.models.providers.arrival import arrival
from retain.roles.subjects import check_subject
from retain.server_sent_events import EventReader
from retain.settings import read_settings
from retain.text_patterns import TextPattern
from tests.gateway.setting import config
from tests.limits.limit import Limit, text_of
from tests.shell.worker import VARIABLES

_RECORD = "retain.memory.records.limits."


def _content(size: int) -> None:
    assert NewRecord(text_of(size)).content == text_of(size)


def _metadata(size: int) -> None:
    assert NewRecord("a", {"a": text_of(size - len('{"a":""}'))}).metadata


def _part(size: int) -> None:
    text = text_of(size)
    assert NewRecord("a", subject=text, predicate=text, object=text).subject == text


def _nested(levels: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(levels - 1):
        value = {"a": value}
    return value


def _utterance(size: int) -> None:
    utterance = NewRecord("a", utterance=Utterance(text_of(size), 1, text_of(size))).utterance
    assert utterance is not None
    assert (utterance.conversation, utterance.speaker) == (text_of(size), text_of(size))


def _nested_metadata(levels: int) -> None:
    assert NewRecord("a", _nested(levels)).metadata == _nested(levels)


def _json(levels: int) -> None:
    assert read_json("[" * levels + "]" * levels) is not None
    check_nested(_nested(levels))


def _spans(count: int) -> None:
    SpansLimit().check("spans", [(number, number + 1) for number in range(count)])


def _time(end: int) -> None:
    assert NewRecord("a", valid_from_ms=end - 1).valid_from_ms == end - 1


def _date(end: int) -> None:
    assert NewRecord("a", utterance=Utterance("c", 1, "s", end - 1)).utterance


def _tool(**changes: Any) -> None:
    parse_tool_config(json.dumps(config(**changes), ensure_ascii=False))


def _config(size: int) -> None:
    parameters = {"type": "object", "properties": {}, "description": ""}
    grown = config(parameters=parameters)
    missing = size - len(json.dumps(grown, sort_keys=True))
    parameters["description"] = "x" * missing
    entry = tool_entry("acme", "tool", grown)
    assert len(json.dumps(grown, sort_keys=True)) == size
    assert json.loads(entry.value) == grown


async def _api_key(size: int) -> None:
    key = keys.KEY_PREFIX + "x" * (size - len(keys.KEY_PREFIX))
    with closing(SqliteKv.open(ManualClock(1_700_000_000_000))) as kv:
        grant = keys.Grant("acme", "id", ("*",), 1)
        await kv.put(keys.stored_name(key), keys.write_grant(grant))
        assert await keys.authenticate(Entries(kv, ManualClock(2), 0), key, 2, None) == (grant, None)


def _host(size: int) -> None:
    labels, rest = divmod(size - len("x.com"), 61)
    name = "".join(f"{'a' * 60}." for _ in range(labels)) + "x" * (rest + 1) + ".com"
    assert len(name) == size
    target.check_target("https", name, allow_loopback=False)


def _pattern(size: int) -> None:
    assert TextPattern("a" * size).found_in("a" * size)


def _copies(count: int) -> None:
    assert TextPattern(f"a{{{count}}}").found_in("a" * count)


def _steps(count: int) -> None:
    assert TextPattern("a").found_in("a" * count)


def _patterns(count: int) -> None:
    entries = [{"template": f"old{number}:{{tenantId}}:{{entityId}}"} for number in range(count)]
    fixed = {"service": "s", "sessionId": "x", "memoryKind": "k"}
    assert len(load_patterns(json.dumps([{**entry, **fixed} for entry in entries]))) == count


def _literal(size: int) -> None:
    fixed = {"service": "s", "sessionId": "x", "memoryKind": "k"}
    template = f"{'x' * (size - 2)}:{{tenantId}}:{{entityId}}"
    [pattern] = load_patterns(json.dumps([{"template": template, **fixed}]))
    assert pattern.template == template


def _message(size: int) -> None:
    empty = len(database_texts([ChatMessage("user", "")])[0])
    message = ChatMessage("user", text_of(size - empty))
    assert message_of(database_texts([message])[0]) == message


def _session(size: int) -> None:
    empty = len(database_texts([ChatMessage("user", "")])[0])
    piece = 800_000
    whole, rest = divmod(size - 2, piece + 1)
    messages = [ChatMessage("user", text_of(piece - empty)) for _ in range(whole)]
    messages[-1:] = [
        ChatMessage("user", text_of(piece - empty - 1_000)),
        ChatMessage("user", text_of(rest + 1_000 - 1 - empty + 1)),
    ]
    texts = database_texts(messages)
    assert sum(len(text.encode()) for text in texts) + len(texts) + 1 == size
    assert [message_of(text) for text in texts] == messages


def _document(size: int) -> None:
    def text(content: str) -> VectorDocument:
        return VectorDocument("id", content, [1.0, 0.0], {})

    empty = len(prepared([text("")], 2)[0].text.encode())
    [kept] = prepared([text(text_of(size - empty))], 2)
    assert len(kept.text.encode()) == size


def _document_id(size: int) -> None:
    [kept] = prepared([VectorDocument(text_of(size), "a", [1.0, 0.0], {})], 2)
    assert kept.id == text_of(size)


async def _pieces(size: int) -> AsyncIterator[bytes]:
    yield b"{"
    yield b" " * (size - 2)
    yield b"}"


async def _whole(size: int) -> None:
    answer = await arrival(_pieces(size))
    assert len(str(answer.whole)) == size


def _event(size: int) -> None:
    line = f"data: {'x' * (size - 7)}\n\n".encode()
    for pieces in ([line], [line[:10], line[10:-2], line[-2:]]):
        reader = EventReader()
        [event] = [event for piece in pieces for event in reader.feed(piece)]
        assert len(event.data) == size - 7


def _event_in_pieces(size: int) -> None:
    reader = EventReader()
    line = f"data: {'x' * (size - 7)}\n\n".encode()
    [event] = [event for start in range(0, len(line), 65_536) for event in reader.feed(line[start : start + 65_536])]
    assert len(event.data) == size - 7


def _gateway_kept(seconds: int) -> None:
    assert read_settings({**VARIABLES, "GATEWAY_KEPT_SECONDS": str(seconds)}).gateway_kept_s == seconds


def _backups(days: int) -> None:
    variables = {**VARIABLES, "BACKUPS_KEPT_DAYS": str(days)}
    assert read_settings(variables).backups_kept_days == days


def _profile(size: int) -> None:
    check_profile(text_of(size, "n"), None, None)


def _hot(seconds: int) -> None:
    assert ItemPlacement("hot", ttl_s=seconds).ttl_s == seconds


LIMITS = (
    Limit(constant=_RECORD + "MAX_CONTENT_BYTES", attempt=_content, code="content_too_large"),
    Limit(constant=_RECORD + "MAX_METADATA_BYTES", attempt=_metadata, code="metadata_too_large"),
    Limit(constant=_RECORD + "MAX_METADATA_NESTING", attempt=_nested_metadata, code="invalid_metadata"),
    Limit(constant=_RECORD + "MAX_PART_BYTES", attempt=_part, code="invalid_subject"),
    Limit(
        constant=_RECORD + "MAX_PART_BYTES",
        what="of an utterance",
        attempt=_utterance,
        code="invalid_conversation",
    ),
    Limit(constant=_RECORD + "MAX_SPANS", attempt=_spans, code="invalid_input"),
    Limit(constant=_RECORD + "END_OF_NUMBERS", attempt=_time, code="invalid_valid_from_ms"),
    Limit(constant=_RECORD + "END_OF_DATES_MS", attempt=_date, code="invalid_at_ms"),
    Limit(constant="retain.json_text.MAX_NESTING", attempt=_json, code=None),
    Limit(constant="retain.lifecycle.terms.MAX_TERM_BYTES", attempt=lambda n: Term.of(text_of(n)), code="invalid_term"),
    Limit(constant=None, what="tenant", at=40, attempt=lambda n: check_tenant("t" * n), code="invalid_tenant"),
    Limit(
        constant=None, what="agent type", at=32, attempt=lambda n: check_agent_type("t" * n), code="invalid_agent_type"
    ),
    Limit(
        constant=None, what="instance", at=64, attempt=lambda n: check_instance_id("t" * n), code="invalid_instance_id"
    ),
    Limit(constant=None, what="user", at=128, attempt=lambda n: check_user_id("t" * n), code="invalid_user"),
    Limit(constant=None, what="segment", at=64, attempt=lambda n: check_segment("t" * n), code="invalid_namespace"),
    Limit(
        constant=None, what="dataset", at=64, attempt=lambda n: check_dataset_name("t" * n), code="invalid_dataset_name"
    ),
    Limit(
        constant=None,
        what="subject of a role",
        at=206,
        attempt=lambda n: check_subject("group:" + "語" * (n - 6)),
        code="invalid_role_subject",
    ),
    Limit(constant="retain.identifiers.MAX_NAME", attempt=_profile, code="invalid_user"),
    Limit(
        constant="retain.gateway.credentials.MAX_CREDENTIAL_BYTES",
        attempt=lambda n: check_credential("x" * n),
        code="credential_too_long",
    ),
    Limit(
        constant="retain.gateway.provisioning.MAX_CONFIG_BYTES", attempt=_config, code="tool_configuration_too_large"
    ),
    Limit(
        constant="retain.gateway.tool_config.MAX_DESCRIPTION_CHARACTERS",
        attempt=lambda n: _tool(description="語" * n),
        code="invalid_tool_configuration",
    ),
    Limit(
        constant="retain.gateway.tool_config.MAX_TIMEOUT_MS",
        attempt=lambda n: _tool(timeout_ms=n),
        code="invalid_tool_configuration",
    ),
    Limit(
        constant="retain.gateway.tool_config.MAX_RESPONSE_BYTES",
        attempt=lambda n: _tool(max_response_bytes=n),
        code="invalid_tool_configuration",
    ),
    Limit(constant="retain.gateway.keys.MAX_KEY_CHARACTERS", attempt=_api_key, code="invalid_api_key"),
    Limit(constant="retain.gateway.target._MAX_HOST_CHARACTERS", attempt=_host, code="forbidden_upstream"),
    Limit(
        constant="retain.gateway.target.MAX_URL_BYTES",
        attempt=lambda n: target.check_length("x" * n),
        code="url_too_long",
    ),
    Limit(
        constant="retain.gateway.upstream.MAX_IDEMPOTENCY_KEY_CHARACTERS",
        attempt=lambda n: check_idempotency_key("x" * n),
        code="invalid_idempotency_key",
    ),
    Limit(constant="retain.text_patterns.MAX_CHARACTERS", attempt=_pattern, code=None),
    Limit(constant="retain.text_patterns.MAX_COPIES", attempt=_copies, code=None),
    Limit(constant="retain.text_patterns.MAX_STEPS", attempt=_steps, code=None),
    Limit(constant="retain.items.rekeying.patterns.MAX_PATTERNS", attempt=_patterns, code="invalid_legacy_pattern"),
    Limit(constant="retain.items.rekeying.patterns.MAX_LITERAL_BYTES", attempt=_literal, code="invalid_legacy_pattern"),
    Limit(
        constant="retain.items.placement.MIN_TTL_S",
        what="of a placement",
        attempt=_hot,
        code="invalid_placement",
        least=True,
    ),
    Limit(constant="retain.contracts.opaque.MAX_PIECE_BYTES", attempt=_message, code="chat_message_too_large"),
    Limit(
        constant="retain.contracts.opaque.MAX_PIECE_BYTES",
        what="of a document",
        attempt=_document,
        code="vector_document_too_large",
    ),
    Limit(constant="retain.contracts.messages.MAX_SESSION_BYTES", attempt=_session, code="chat_session_too_large"),
    Limit(constant="retain.contracts.documents.MAX_ID_BYTES", attempt=_document_id, code="vector_document_too_large"),
    Limit(constant="retain.models.providers.arrival.MAX_WHOLE_BYTES", attempt=_whole, code="malformed_answer"),
    Limit(constant="retain.server_sent_events.MAX_EVENT_CHARACTERS", attempt=_event, code="malformed_answer"),
    Limit(
        constant="retain.server_sent_events.MAX_EVENT_CHARACTERS",
        what="in pieces",
        attempt=_event_in_pieces,
        code="malformed_answer",
    ),
    Limit(constant="retain.settings.MAX_BACKUPS_KEPT_DAYS", attempt=_backups, code="invalid_setting"),
    Limit(constant="retain.settings.MAX_GATEWAY_KEPT_S", attempt=_gateway_kept, code="invalid_setting"),
)
