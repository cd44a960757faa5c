"""The conformance suite of `ChatMemory`: CM1 to CM6, and the tests of `chat_sessions`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence

from retain.contracts.chat import ChatMemory, ClearableChatMemory
from retain.identifiers import new_id
from retain.json_text import Json
from retain.models.chat import ChatMessage, Role, ToolCall
from retain.testing.chat_sessions import ChatSessions, numbered
from retain.testing.suite import cancelled, check, exact, invariant, short

_MANY = 1_500
_INTERRUPTIONS = 24
_ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
_TEXTS = (
    "",
    " ",
    "Hello.",
    "Grüße, 你好 🦀",
    "Gr\u00fc\u00dfe and Gru\u0308\u00dfe",
    "line\nline\ttab\r\n ",
    "NUL \0 inside",
    "&lt;b&gt; %s {} \\n",
    "\u2028\ufeff",
    '{"role": "user"}',
    "x" * 5000,
)
_ARGUMENTS: tuple[dict[str, Json], ...] = (
    {},
    {"order": "AB-1003", "items": [1, 2.5, None, True, {"": "é"}]},
    {"n": 2**53 + 1, "s": "\0", "one": 1, "float": 1.0, "true": True, "no": False, "none": None, "empty": {}},
    {"Key": "A", "key": "a", "u\u0308": 1, "\u00fc": 2, "number": "007", "date": "2026-01-01"},
)


class ChatMemorySuite(ChatSessions):
    """The tests of a `ChatMemory`. Name the subclass `Test…`, override `open`, and pytest runs them."""

    @invariant
    async def test_cm1_load_is_a_snapshot(self) -> None:
        """A load returns all messages as a list, which no later save changes, and changing it changes nothing stored."""
        memory = await self.open(new_id())
        await memory.save(numbered(_MANY))
        loaded = await memory.load()
        check(isinstance(loaded, list), "CM1", f"load returned a {type(loaded).__name__}, not a list")
        check(len(loaded) == _MANY, "CM1", f"load returned {len(loaded)} of {_MANY} messages")
        before = list(loaded)
        await memory.save(numbered(3))
        check(loaded == before, "CM1", "a later save changed what was loaded before")
        await memory.load()
        check(loaded == before, "CM1", "a later load changed what was loaded before")
        (await memory.load()).clear()
        check(list(await memory.load()) == numbered(3), "CM1", "changing what was loaded changed what is stored")

    @invariant
    async def test_cm2_save_replaces_all(self) -> None:
        """After a save the conversation is exactly what was given, whether longer, shorter or empty."""
        session = new_id()
        memory = await self.open(session)
        for count in (3, 1, 5, 5, 0, 2):
            given = numbered(count, of=f"a conversation of {count}")
            await memory.save(given if count % 2 else tuple(given))
            given.append(ChatMessage("user", "added by the caller after the save"))
            expected = given[:-1]
            for again in (memory, await self.open(session)):
                found = await again.load()
                check(
                    list(found) == expected, "CM2", f"{count} messages were saved, the conversation is {short(found)}"
                )

    @invariant
    async def test_cm3_order_is_preserved(self) -> None:
        """Messages are loaded equal and in order: repeated ones, empty ones, tool calls, any text."""
        chance = random.Random(3)
        conversations = [[_any_message(chance) for _ in range(size)] for size in (1, 2, 11, 12, 30)]
        conversations.append([ChatMessage("user", "again")] * 3)
        conversations.append(list(reversed(numbered(25))))
        for given in conversations:
            memory = await self.open(new_id())
            await memory.save(given)
            found = await memory.load()
            check(exact(list(found)) == exact(given), "CM3", f"{short(given)} was loaded as {short(found)}")

    @invariant
    async def test_cm4_a_save_is_atomic(self) -> None:
        """No load sees part of a save: not while it runs, nor when it failed, was cancelled, or met another save."""
        before, after = await self._undisturbed(_OLD, _NEW)
        await self._a_save_that_fails(before)
        await self._a_save_that_is_watched([before, after])
        for turns in range(_INTERRUPTIONS):
            if not await self._a_save_that_is_cancelled(turns, [before, after]):
                break
        await self._saves_at_once()

    @invariant
    async def test_cm5_an_empty_memory_is_an_empty_list(self) -> None:
        """A conversation that was never saved is []."""
        memory = await self.open(new_id())
        try:
            found: object = await memory.load()
        except Exception as error:
            raise AssertionError(f"CM5: load of a new conversation raised {type(error).__name__}") from error
        check(found == [] and isinstance(found, list), "CM5", f"a new conversation is {found!r}, not []")

    @invariant
    async def test_cm6_clear_is_opt_in(self) -> None:
        """If a memory has `clear`, it forgets everything; a memory that cannot has no such method."""
        session = new_id()
        memory = await self.open(session)
        if not isinstance(memory, ClearableChatMemory):
            return
        try:
            await memory.clear()
            await memory.save(numbered(3))
            await memory.clear()
            await memory.clear()
        except Exception as error:
            raise AssertionError(f"CM6: it has a clear, which raised {type(error).__name__}") from error
        found = await (await self.open(session)).load()
        check(not found, "CM6", f"after clear the conversation is {short(found)}")
        await memory.save(list(_OLD))
        check(list(await memory.load()) == list(_OLD), "CM6", "after clear nothing can be saved")
        for turns in range(_INTERRUPTIONS):
            await memory.save(list(_OLD))
            unfinished = await cancelled(_cleared(memory), turns)
            found = list(await (await self.open(session)).load())
            check(found in ([], list(_OLD)), "CM6", f"a clear that was cancelled left {short(found)}")
            if not unfinished:
                break

    async def _undisturbed(
        self, first: Sequence[ChatMessage], second: Sequence[ChatMessage]
    ) -> tuple[list[ChatMessage], list[ChatMessage]]:
        """Return what is loaded after the first save, and after the second."""
        memory = await self.open(new_id())
        await memory.save(list(first))
        between = list(await memory.load())
        await memory.save(list(second))
        return between, list(await memory.load())

    async def _saves_at_once(self) -> None:
        _, first_then_second = await self._undisturbed(_OLD, _NEW)
        _, second_then_first = await self._undisturbed(_NEW, _OLD)
        session = new_id()
        memory, other = await self.open(session), await self.open(session)
        for one, another in ((memory, memory), (memory, other), (other, memory)):
            await asyncio.gather(one.save(list(_OLD)), another.save(list(_NEW)))
            found = list(await memory.load())
            check(found in (first_then_second, second_then_first), "CM4", f"two saves were mixed: {short(found)}")

    async def _a_save_that_fails(self, before: list[ChatMessage]) -> None:
        memory = await self.open(new_id())
        await memory.save(list(_OLD))
        not_json = ChatMessage("assistant", "", (ToolCall("1", "ship", {"order": object()}),))  # type: ignore[dict-item]
        try:
            await memory.save([*_NEW, not_json, *_NEW])
        except Exception:  # noqa: BLE001 -- the backend chooses the error
            found = list(await memory.load())
            check(found == before, "CM4", f"a save that failed left {short(found)}")

    async def _a_save_that_is_watched(self, states: list[list[ChatMessage]]) -> None:
        session = new_id()
        memory, other = await self.open(session), await self.open(session)
        await memory.save(list(_OLD))
        saving = asyncio.ensure_future(memory.save(list(_NEW)))
        for _ in range(1_000):
            found = list(await other.load())
            check(found in states, "CM4", f"while a save ran, load returned {short(found)}")
            if saving.done():
                break
            await asyncio.sleep(0)
        await saving

    async def _a_save_that_is_cancelled(self, turns: int, states: list[list[ChatMessage]]) -> bool:
        """Cancel a save after this many turns of the event loop; return False if it had finished by then."""
        session = new_id()
        await (await self.open(session)).save(list(_OLD))
        unfinished = await cancelled(_saved(await self.open(session), list(_NEW)), turns)
        found = list(await (await self.open(session)).load())
        check(found in states, "CM4", f"a save that was cancelled left {short(found)}")
        return unfinished


_OLD = tuple(numbered(4, of="the old conversation"))
_NEW = tuple(numbered(6, of="the new conversation"))


async def _saved(memory: ChatMemory, messages: Sequence[ChatMessage]) -> None:
    await memory.save(messages)


async def _cleared(memory: ClearableChatMemory) -> None:
    await memory.clear()


def _any_message(chance: random.Random) -> ChatMessage:
    role = chance.choice(_ROLES)
    calls = tuple(
        ToolCall(f"call-{n}", "ship", chance.choice(_ARGUMENTS), chance.choice((None, "", "not JSON: {")))
        for n in range(chance.randrange(3))
    )
    return ChatMessage(
        role,
        chance.choice(_TEXTS),
        calls if role == "assistant" else (),
        chance.choice(("call-1", "")) if role == "tool" else None,
        failed=role == "tool" and chance.random() < 0.5,
    )
