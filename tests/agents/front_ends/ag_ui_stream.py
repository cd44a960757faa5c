"""AG-UI's events as a client reads them: validated by the protocol's own package, and in an order that it allows."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ag_ui.core import Event
from pydantic import TypeAdapter

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
_TERMINAL = ("RUN_FINISHED", "RUN_ERROR")


def parsed(stream: str) -> list[tuple[int | None, dict[str, Any]]]:
    """Return the events of a stream with their ids. Each is one that the protocol's package knows, with no other member."""
    found = []
    for block in stream.split("\n\n"):
        lines = [line for line in block.splitlines() if line and not line.startswith((":", "retry:"))]
        if not lines:
            continue
        fields = dict(line.split(": ", 1) for line in lines)
        content = json.loads(fields.pop("data"))
        event = _EVENT.validate_python(content)
        assert event.model_extra == {}, content
        assert event.model_dump(mode="json", by_alias=True) == content
        found.append((int(fields.pop("id")) if "id" in fields else None, content))
        assert fields == {}
    return found


def check_order(events: Iterable[dict[str, Any]], *, continued: bool = False) -> None:
    """Fail unless a client may read the events in this order. continued: they follow others, after a reconnection.

    Source: https://docs.ag-ui.com/spec/1.0/basic/patterns
    """
    running, message = continued, None
    calls: set[str] = set()
    steps: set[str] = set()
    for event in events:
        kind = event["type"]
        assert running or kind in ("RUN_STARTED", "RUN_ERROR"), event
        match kind:
            case "RUN_STARTED":
                assert not running or continued
                running = True
            case "TEXT_MESSAGE_START":
                assert message is None
                message = event["messageId"]
            case "TEXT_MESSAGE_CONTENT":
                assert message == event["messageId"]
            case "TEXT_MESSAGE_END":
                assert message == event["messageId"]
                message = None
            case "TOOL_CALL_START":
                assert event["toolCallId"] not in calls
                calls.add(event["toolCallId"])
            case "TOOL_CALL_ARGS":
                assert event["toolCallId"] in calls
            case "TOOL_CALL_END":
                calls.remove(event["toolCallId"])
            case "STEP_STARTED":
                assert event["stepName"] not in steps
                steps.add(event["stepName"])
            case "STEP_FINISHED":
                assert continued or event["stepName"] in steps
                steps.discard(event["stepName"])
            case "RUN_FINISHED" | "RUN_ERROR":
                assert kind == "RUN_ERROR" or (message is None and not calls and not steps), event
                running = False
    assert not running, "the stream has no end"
    assert message is None
    assert calls == set()


def text_of(events: Iterable[dict[str, Any]]) -> list[str]:
    """Return the texts of the messages, in order."""
    texts: dict[str, str] = {}
    for event in events:
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            texts[event["messageId"]] = texts.get(event["messageId"], "") + event["delta"]
    return list(texts.values())


__all__ = ["check_order", "parsed", "text_of"]
