"""Conversations that do not keep every message as it was given."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from retain.models.chat import ChatMessage
from tests.contracts.broken.chat_saves import CM1, CM3, CM4, WHOLE
from tests.contracts.broken.kinds import Broken, Table, replacing
from tests.contracts.broken.sound import SoundChat

Keeping = Callable[[SoundChat, Sequence[ChatMessage]], list[ChatMessage]]


def keeping(change: Callable[[list[ChatMessage]], list[ChatMessage]]) -> Keeping:
    """Return a part that stores the messages as they are after the change."""
    return lambda memory, messages: change(SoundChat.kept(memory, messages))


def contents(change: Callable[[str], str]) -> Keeping:
    """Return a part that stores the messages with changed contents."""
    return keeping(lambda messages: [replace(each, content=change(each.content)) for each in messages])


def arguments(change: Callable[[Any], Any], *, before: bool = False) -> Keeping:
    """Return a part that stores changed values in the arguments of calls. before: before they are checked."""

    def changed(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        return [
            replace(
                each,
                tool_calls=tuple(replace(call, arguments=change(dict(call.arguments))) for call in each.tool_calls),
            )
            for each in messages
        ]

    if before:
        return lambda memory, messages: SoundChat.kept(memory, changed(messages))
    return keeping(changed)


def each_value(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the change of every value in nested lists and objects."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(part) for name, part in value.items()}
        return [walk(part) for part in value] if isinstance(value, list) else change(value)

    return walk


def each_name(change: Callable[[str], str]) -> Callable[[Any], Any]:
    """Return the change of every name in nested objects."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {change(name): walk(part) for name, part in value.items()}
        return [walk(part) for part in value] if isinstance(value, list) else value

    return walk


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=repr))


def _merged(messages: list[ChatMessage]) -> list[ChatMessage]:
    found: list[ChatMessage] = []
    for each in messages:
        if found and each.role == found[-1].role == "system":
            found[-1] = replace(each, content=f"{found[-1].content}\n{each.content}")
        else:
            found.append(each)
    return found


def _as_text_below(value: Any, depth: int = 0) -> Any:
    if isinstance(value, list):
        return repr(value) if depth > 32 else [_as_text_below(part, depth + 1) for part in value]
    return {name: _as_text_below(part, depth + 1) for name, part in value.items()} if isinstance(value, dict) else value


def changing(what: str, caught_by: str, kept: Keeping) -> Broken:
    """Return a conversation that stores something else than it was given."""
    return replacing(what, caught_by, SoundChat, kept=kept)


def _number(change: Callable[[float], Any]) -> Callable[[Any], Any]:
    return each_value(lambda value: change(value) if isinstance(value, int | float) else value)


BROKEN = Table(
    [
        changing("A conversation ends after 1,000 messages.", CM1, keeping(lambda all_: all_[:1000])),
        changing("Only the last 2,000 messages are kept.", WHOLE, keeping(lambda all_: all_[-2000:])),
        changing(
            "A message equal to the one before is dropped.",
            CM3,
            keeping(lambda all_: [each for place, each in enumerate(all_) if place == 0 or each != all_[place - 1]]),
        ),
        changing(
            "Messages without content are dropped.", CM3, keeping(lambda all_: [each for each in all_ if each.content])
        ),
        changing(
            "The system's messages are moved to the front.",
            CM3,
            keeping(lambda all_: sorted(all_, key=lambda each: each.role != "system")),
        ),
        changing("Consecutive messages of the system are merged.", CM3, keeping(_merged)),
        changing("Contents are put into Unicode's composed form.", CM3, contents(lambda text: normalize("NFC", text))),
        changing("Contents lose outer spaces.", CM3, contents(str.strip)),
        changing("Ends of lines are rewritten.", CM3, contents(lambda text: text.replace("\r\n", "\n"))),
        changing("Contents are cut at NUL.", CM3, contents(lambda text: text.split("\0")[0])),
        changing("Contents are cut at 4,000 characters.", CM3, contents(lambda text: text[:4000])),
        changing("Contents are cut at 8,000 characters.", WHOLE, contents(lambda text: text[:8000])),
        changing("Entities of HTML are decoded.", CM3, contents(lambda text: text.replace("&lt;", "<"))),
        changing(
            "Calls of tools are dropped.", CM3, keeping(lambda all_: [replace(each, tool_calls=()) for each in all_])
        ),
        changing(
            "An empty id of a call becomes None.",
            CM3,
            keeping(lambda all_: [replace(each, tool_call_id=each.tool_call_id or None) for each in all_]),
        ),
        changing(
            "A failed tool becomes one that worked.",
            CM3,
            keeping(lambda all_: [replace(each, failed=False) for each in all_]),
        ),
        changing("Integers become floats.", CM3, arguments(_number(float))),
        changing("Truth values become numbers.", CM3, arguments(_number(lambda value: value + 0))),
        changing(
            "Large integers are rounded.", CM3, arguments(_number(lambda n: int(float(n)) if n == 2**53 + 1 else n))
        ),
        changing(
            "Arguments that are None are dropped.",
            CM3,
            arguments(lambda given: {name: value for name, value in given.items() if value is not None}),
        ),
        changing(
            "Arguments that are empty, zero or False are dropped.",
            CM3,
            arguments(lambda given: {name: value for name, value in given.items() if value}),
        ),
        changing("Names of arguments have no case.", CM3, arguments(each_name(str.lower))),
        changing(
            "Names of arguments are put into Unicode's composed form.",
            CM3,
            arguments(each_name(lambda name: normalize("NFC", name))),
        ),
        changing(
            "Text that looks like a number becomes one.",
            CM3,
            arguments(each_value(lambda value: int(value) if isinstance(value, str) and value.isdigit() else value)),
        ),
        changing("What is not JSON is stored as its text.", WHOLE, arguments(_as_json, before=True)),
        changing(
            "NaN is stored as null.",
            WHOLE,
            arguments(each_value(lambda one: None if isinstance(one, float) and math.isnan(one) else one), before=True),
        ),
        changing(
            "A tuple is stored as a list.",
            WHOLE,
            arguments(each_value(lambda value: list(value) if isinstance(value, tuple) else value), before=True),
        ),
        changing("Keys that are not text are stored as text.", WHOLE, arguments(each_name(str), before=True)),
        changing("Arguments nested deeper than 32 levels are stored as text.", WHOLE, arguments(_as_text_below)),
        changing(
            "A message without content is stored with an empty one.",
            WHOLE,
            lambda memory, messages: SoundChat.kept(
                memory, [replace(each, content=each.content or "") for each in messages]
            ),
        ),
        changing(
            "What is not Unicode is replaced by a question mark.",
            WHOLE,
            lambda memory, messages: SoundChat.kept(
                memory,
                [replace(each, content=(each.content or "").encode("utf-8", "replace").decode()) for each in messages],
            ),
        ),
    ]
)


@BROKEN.holds("Messages that cannot be stored are left out.", WHOLE)
class LeavesOut(SoundChat):
    def kept(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        found: list[ChatMessage] = []
        for each in messages:
            try:
                found += super().kept([each])
            except Exception:  # noqa: BLE001
                continue
        return found


@BROKEN.holds("A refused save empties the conversation.", WHOLE)
class RefusesAndEmpties(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        self.store.pop(self.session, None)
        await super().save(messages)


@BROKEN.holds("`load` returns a tuple.", CM1)
class LoadsATuple(SoundChat):
    async def load(self) -> Any:
        return tuple(await super().load())


@BROKEN.holds("A load reads a page at a time, and a save may come between two pages.", CM4)
class Pages(SoundChat):
    async def load(self) -> list[ChatMessage]:
        found: list[ChatMessage] = []
        while page := self.store.get(self.session, [])[len(found) : len(found) + 2]:
            found += page
            if len(found) < 12:
                await asyncio.sleep(0)
        return self.shown(found)
