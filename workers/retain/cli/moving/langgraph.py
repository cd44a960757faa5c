"""Items of a LangGraph store: what `search` returns, each as its `dict()`.

Source: https://reference.langchain.com/python/langgraph.store/base/Item
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from retain.cli.moving.entries import invalid, moment_in, read_entries, text_in
from retain.cli.moving.memory import ForeignMemory

_TEXTS = ("content", "text", "memory", "data", "fact")
"""Members of a value that hold its text, in the order in which they are looked for."""


def memories(text: str, *, user_at: int | None = None) -> Iterator[ForeignMemory]:
    """Yield the memories of a file. A value without a text of its own is stored as JSON.

    user_at: which part of a namespace, from 0 or from the end below 0, names the user. None: no part.
    Raises: InvalidInput (code `invalid_export`), naming the entry.
    """
    for number, item in read_entries(text, ("items", "results")):
        namespace, key, value = _namespace(item.get("namespace")), text_in(item, "key"), item.get("value")
        if namespace is None or key is None or not isinstance(value, dict):
            raise invalid(number, "an item of LangGraph has a namespace, a key and a value")
        content, rest = _text_of(value)
        try:
            yield ForeignMemory(
                number,
                json.dumps([*namespace, key]),
                content,
                _with_place(rest, {"namespace": namespace, "key": key}),
                _user(namespace, user_at),
                recorded_at_ms=moment_in(item, "created_at"),
            )
        except ValueError as error:
            raise invalid(number, str(error)) from error


def _namespace(value: object) -> list[str] | None:
    return value if isinstance(value, list) and all(isinstance(part, str) for part in value) else None


def _user(namespace: Sequence[str], user_at: int | None) -> str | None:
    if user_at is None:
        return None
    try:
        return namespace[user_at]
    except IndexError as error:
        raise ValueError(f"its namespace has no part {user_at}, which names the user") from error


def _with_place(rest: Mapping[str, Any], place: Mapping[str, Any]) -> dict[str, Any]:
    """Return what else a value has, and where the item is: as `item_key` where the value has a `key` of its own."""
    return {**{f"item_{name}" if name in rest else name: own for name, own in place.items()}, **rest}


def _text_of(value: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the text of a value, and what else it has. LangMem keeps the text one level below."""
    for inner in (value, value.get("content"), value.get("value")):
        name = next((one for one in _TEXTS if isinstance(inner, dict) and text_in(inner, one)), None)
        if name is not None and isinstance(inner, dict):
            outer = {} if inner is value else {key: kept for key, kept in value.items() if kept is not inner}
            return inner[name], {**outer, **{key: kept for key, kept in inner.items() if key != name}}
    return json.dumps(value, ensure_ascii=False, sort_keys=True), {}
