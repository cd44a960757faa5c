"""The tests of a `ChatMemory` that concern several sessions, several views of one, and what callers hold."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from copy import deepcopy
from typing import Any, Self

from retain.contracts.chat import ChatMemory, ClearableChatMemory
from retain.identifiers import new_id
from retain.models.chat import ChatMessage, ToolCall
from retain.testing.suite import Suite, check, exact, invariant, short

_LONG = 200_000
_LIVELY = 3_000
_UNFIT: tuple[tuple[str, Any], ...] = (
    ("an object", object()),
    ("a set", {1, 2}),
    ("bytes", b"bytes"),
    ("NaN", float("nan")),
    ("an infinite number", float("inf")),
    ("a key that is not text", {1: "one"}),
    ("a tuple", (1, 2)),
    ("text that is not Unicode", "\ud800"),
)


class ChatSessions(Suite):
    """What a `ChatMemory` keeps apart: sessions, and its own copy from its callers'."""

    async def open(self, session: str) -> ChatMemory:
        """Return the memory of a session, which is empty when it is new. Opened again, it has what was saved to it.

        session: 1 to 64 ASCII letters and digits, never used by another test. Names that differ only in case, in leading
        zeros, or in that one begins with the other are different sessions.
        """
        raise NotImplementedError("override this to open a session of your backend")

    @classmethod
    def of(cls, open_session: Callable[[str], Awaitable[ChatMemory]]) -> Self:
        """Return the suite of the backend that `open_session` opens, for `cases`."""
        suite = cls()
        setattr(suite, "open", open_session)  # noqa: B010 -- the type checker sees a method
        return suite

    @invariant
    async def test_sessions_are_separate(self) -> None:
        """No save, no load and no clear reaches another session, whatever its name, and concurrent saves are all kept."""
        names = similar(new_id())
        expected = {name: numbered(2, of=name) for name in names}
        await asyncio.gather(*[(await self.open(name)).save(expected[name]) for name in names])
        await self._each_has(expected, "all were saved at once")
        await (await self.open(names[0])).save([])
        await self._each_has(expected | {names[0]: []}, f"{names[0]} was emptied")
        await (await self.open(names[0])).save(expected[names[0]])
        for name in names:
            memory = await self.open(name)
            if not isinstance(memory, ClearableChatMemory):
                return
            await memory.clear()
            expected[name] = []
            await self._each_has(expected, f"{name} was cleared")

    @invariant
    async def test_every_view_sees_the_last_save(self) -> None:
        """A load that begins after a save returned sees it, and a save replaces what others saved in between."""
        session = new_id()
        views = [await self.open(session), await self.open(session)]
        for view in views:
            await view.load()
        for turn, count in enumerate((5, 2, 7, 0, 3)):
            given = numbered(count, of=f"turn {turn}")
            await views[turn % 2].save(given)
            for view in (*views, await self.open(session)):
                found = await view.load()
                check(list(found) == given, "Views", f"{count} messages were saved, a view loads {short(found)}")
        known = list(await views[0].load())
        await views[1].save(numbered(6, of="another writer"))
        await views[0].save(known)
        found = await views[1].load()
        check(list(found) == known, "Views", f"a view that had not loaded again saved, which left {short(found)}")
        first, second = views
        if isinstance(first, ClearableChatMemory):
            await first.clear()
            check(not await second.load(), "Views", "a view sees what another one cleared")
            await second.save(known)
            check(list(await first.load()) == known, "Views", "a save after another view's clear is not seen")

    @invariant
    async def test_nothing_is_shared_with_the_caller(self) -> None:
        """What the caller changes later, in what was saved or in what was loaded, changes nothing that is stored."""
        session = new_id()
        memory = await self.open(session)
        given = [ChatMessage("assistant", "", (ToolCall("1", "ship", {"items": [{"count": 1}]}),))]
        expected = deepcopy(given)
        await memory.save(given)
        _change(given)
        await self._still(session, memory, expected, "what was saved")
        loaded, other = list(await memory.load()), list(await memory.load())
        _change(loaded)
        check(exact(other) == exact(expected), "Aliasing", "two loads share their arguments")
        await self._still(session, memory, expected, "what was loaded")
        await memory.save(await memory.load())
        await self._still(session, memory, expected, "nothing, and saved what was loaded,")

    @invariant
    async def test_a_message_is_kept_whole_or_refused(self) -> None:
        """What a backend cannot keep makes save raise and leaves the conversation: nothing is cut, left out or altered."""
        nested: Any = "the innermost"
        for _ in range(60):
            nested = [nested]
        large: list[tuple[str, list[ChatMessage]]] = [
            ("a long message", [ChatMessage("user", "é" * _LONG)]),
            ("many messages", numbered(_LIVELY)),
            ("a long argument", [_calling("x" * _LONG)]),
            ("nested arguments", [_calling(nested)]),
        ]
        unfit = [(what, [*numbered(2), _calling(value)]) for what, value in _UNFIT]
        unfit.append(("text that is not Unicode", [ChatMessage("user", "\udfff")]))
        unfit.append(("no content", [ChatMessage("user", None)]))  # type: ignore[arg-type]
        before = numbered(3, of="the conversation before")
        for what, given in (*large, *unfit):
            session = new_id()
            memory = await self.open(session)
            await memory.save(before)
            expected = given
            try:
                await memory.save(given)
            except Exception:  # noqa: BLE001 -- the backend chooses the error
                expected = before
            found = await (await self.open(session)).load()
            check(
                exact(list(found)) == exact(expected),
                "Whole",
                f"{what}: the save {'raised' if expected is before else 'returned'}, and left {short(found)}",
            )

    async def _each_has(self, expected: dict[str, list[ChatMessage]], when: str) -> None:
        for name, messages in expected.items():
            found = await (await self.open(name)).load()
            check(list(found) == messages, "Sessions", f"after {when}, the session {name} has {short(found)}")

    async def _still(self, session: str, memory: ChatMemory, expected: list[ChatMessage], what: str) -> None:
        for view in (memory, await self.open(session)):
            found = list(await view.load())
            check(
                exact(found) == exact(expected), "Aliasing", f"the caller changed {what} and what is stored is {found}"
            )


def similar(name: str) -> list[str]:
    """Return names that a careless backend takes for one another. name: a new id."""
    number = str(int(name, 36))
    return [name, name.lower(), f"{name}A", f"{name}A0", f"0{name}", number, f"0{number}"]


def numbered(count: int, *, of: str = "a conversation") -> list[ChatMessage]:
    """Return this many different messages."""
    return [ChatMessage("user", f"message {number} of {of}") for number in range(count)]


def _calling(value: Any) -> ChatMessage:
    return ChatMessage("assistant", "", (ToolCall("1", "ship", {"value": value}),))


def _change(messages: Sequence[ChatMessage]) -> None:
    arguments: Any = messages[0].tool_calls[0].arguments
    arguments["items"][0]["count"] = 2
    arguments["items"].append("added")
    arguments["added"] = True
