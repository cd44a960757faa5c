"""Conversations that are broken in how sessions, views and saves relate."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from retain.models.chat import ChatMessage
from tests.contracts.broken.kinds import Table, replacing
from tests.contracts.broken.sound import ChatStore, SoundChat

SEPARATE = "test_sessions_are_separate"
VIEWS = "test_every_view_sees_the_last_save"
SHARED = "test_nothing_is_shared_with_the_caller"
WHOLE = "test_a_message_is_kept_whole_or_refused"
CM1, CM2, CM3 = "test_cm1_load_is_a_snapshot", "test_cm2_save_replaces_all", "test_cm3_order_is_preserved"
CM4, CM5 = "test_cm4_a_save_is_atomic", "test_cm5_an_empty_memory_is_an_empty_list"
CM6 = "test_cm6_clear_is_opt_in"

BROKEN = Table(
    [
        replacing("All sessions are one conversation.", SEPARATE, SoundChat, key=lambda _: "one"),
        replacing("Names of sessions have no case.", SEPARATE, SoundChat, key=lambda it: it.session.lower()),
        replacing("Names of sessions are cut at 26 characters.", SEPARATE, SoundChat, key=lambda it: it.session[:26]),
        replacing("A name's leading zeros do not count.", SEPARATE, SoundChat, key=lambda it: it.session.lstrip("0")),
    ]
)


@BROKEN.holds("`clear` empties every session.", SEPARATE)
class ClearsAll(SoundChat):
    async def clear(self) -> None:
        self.store.clear()


@BROKEN.holds("`clear` empties every session whose name begins with this one's.", SEPARATE)
class ClearsByPrefix(SoundChat):
    async def clear(self) -> None:
        for key in [key for key in self.store if key.startswith(self.key())]:
            del self.store[key]


@BROKEN.holds("Saving no messages empties every session.", SEPARATE)
class SavesNothingEverywhere(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        if not messages:
            self.store.clear()
        await super().save(messages)


@BROKEN.holds("All sessions are read and written as one value, so that concurrent saves are lost.", SEPARATE)
class OneValue(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept = {**self.store, self.key(): self.kept(messages)}
        await asyncio.sleep(0)
        self.store.clear()
        self.store.update(kept)


@BROKEN.holds("A view that has loaded never sees what is saved later.", VIEWS)
class LoadsOnce(SoundChat):
    async def load(self) -> list[ChatMessage]:
        if "known" not in vars(self):
            self.known = await super().load()
        return list(self.known)

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save(messages)
        self.known = self.kept(messages)


@BROKEN.holds("A save writes only the messages that differ from what the view saw last.", VIEWS)
class WritesItsDifference(SoundChat):
    def __init__(self, store: ChatStore, session: str) -> None:
        super().__init__(store, session)
        self.seen: list[ChatMessage] = []

    async def load(self) -> list[ChatMessage]:
        self.seen = await super().load()
        return list(self.seen)

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        now, kept = self.store.get(self.session, []), self.kept(messages)
        same = [place < len(self.seen) and each == self.seen[place] for place, each in enumerate(kept)]
        merged = [now[place] if same[place] and place < len(now) else each for place, each in enumerate(kept)]
        self.store[self.session], self.seen = merged, kept

    async def clear(self) -> None:
        await super().clear()
        self.seen = []


@BROKEN.holds("A save keeps what another view has added since this one loaded.", VIEWS)
class KeepsOthersMessages(WritesItsDifference):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        added = self.store.get(self.session, [])[len(self.seen) :] if self.seen else []
        self.store[self.session] = self.seen = [*self.kept(messages), *added]


@BROKEN.holds("`clear` empties the conversation for this view only.", VIEWS)
class ClearsForItself(SoundChat):
    cleared = False

    async def load(self) -> list[ChatMessage]:
        return [] if self.cleared else await super().load()

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        self.cleared = False
        await super().save(messages)

    async def clear(self) -> None:
        self.cleared = True


@BROKEN.holds("A view that was cleared does not see what others save.", VIEWS)
class ClearedOnce(ClearsForItself):
    async def clear(self) -> None:
        await SoundChat.clear(self)
        self.cleared = True


@BROKEN.holds("What is saved after a `clear` is lost.", CM6)
class ClosedForGood(SoundChat):
    async def clear(self) -> None:
        self.store[f"{self.key()}/closed"] = []
        await super().clear()

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        if f"{self.key()}/closed" not in self.store:
            await super().save(messages)


@BROKEN.holds("`clear` exists, and raises.", CM6)
class ClearRaises(SoundChat):
    async def clear(self) -> None:
        raise NotImplementedError


@BROKEN.holds("`clear` raises for a conversation that was never saved.", CM6)
class ClearNeedsASave(SoundChat):
    async def clear(self) -> None:
        del self.store[self.key()]


@BROKEN.holds("`clear` forgets only the older half.", CM6)
class ClearsHalf(SoundChat):
    async def clear(self) -> None:
        kept = self.store.get(self.session, [])
        self.store[self.session] = kept[len(kept) // 2 :]


@BROKEN.holds("`clear` removes one message after the other, and may be cancelled between them.", CM6)
class ClearsOneByOne(SoundChat):
    async def clear(self) -> None:
        while self.store.get(self.session):
            del self.store[self.session][0]
            await asyncio.sleep(0)


@BROKEN.holds("After a `clear`, `load` raises.", CM6)
class RaisesAfterAClear(SoundChat):
    async def load(self) -> list[ChatMessage]:
        return self.shown(self.store.get(self.key(), []) if "cleared" not in vars(self) else self.store[self.key()])

    async def clear(self) -> None:
        await super().clear()
        self.store[self.key()] = None  # type: ignore[assignment]


class Objects(SoundChat):
    """Keeps the messages themselves, which it has checked."""

    def kept(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        super().kept(messages)
        return list(messages)


@BROKEN.holds("The caller's own messages are stored, with their arguments.", SHARED)
class StoresTheCallers(Objects):
    def shown(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        return SoundChat.kept(self, messages)


@BROKEN.holds("The stored messages themselves are loaded, with their arguments.", SHARED)
class LoadsTheStored(SoundChat):
    def shown(self, messages: list[ChatMessage]) -> list[ChatMessage]:
        return list(messages)


@BROKEN.holds("`load` returns the stored list itself.", CM1)
class TheLiveList(SoundChat):
    async def load(self) -> list[ChatMessage]:
        return self.store.setdefault(self.session, [])

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        self.store.setdefault(self.session, [])[:] = self.kept(messages)


@BROKEN.holds("Every `load` of a view returns the same list, filled again.", CM1)
class OneListForAllLoads(SoundChat):
    async def load(self) -> list[ChatMessage]:
        filled: list[ChatMessage] = vars(self).setdefault("filled", [])
        filled[:] = await super().load()
        return filled


@BROKEN.holds("`load` takes the messages away.", CM1)
class LoadsAndForgets(SoundChat):
    async def load(self) -> list[ChatMessage]:
        return self.store.pop(self.session, [])


@BROKEN.holds("Save adds to the conversation instead of replacing it.", CM2)
class Appends(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save([*self.store.get(self.session, []), *messages])


@BROKEN.holds("What the caller adds to its list after the save is part of the conversation.", CM2)
class ReadsTheCallersListLater(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save(messages)
        self.given, self.count = messages, len(messages)

    async def load(self) -> list[ChatMessage]:
        added = self.given[self.count :] if "given" in vars(self) else []
        return [*(await super().load()), *added]


@BROKEN.holds("Save takes lists only.", CM2)
class ListsOnly(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save(list.copy(messages))  # type: ignore[arg-type]


@BROKEN.holds("Saving no messages is ignored.", CM2)
class IgnoresNothing(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        if messages:
            await super().save(messages)


@BROKEN.holds("Save writes the new messages over the old ones, and leaves the old ones beyond them.", CM2)
class NeverShortens(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept = self.kept(messages)
        self.store[self.session] = [*kept, *self.store.get(self.session, [])[len(kept) :]]


@BROKEN.holds("Save empties the caller's list, which it has copied.", CM2)
class TakesTheList(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        await super().save(messages)
        if isinstance(messages, list):
            messages.clear()


@BROKEN.holds("Save empties the conversation, and then writes one message after the other.", CM4)
class OneByOne(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept = self.kept(messages)
        self.store[self.session] = []
        for place, message in enumerate(kept):
            self.store[self.session].append(message)
            if place < 10:
                await asyncio.sleep(0)


@BROKEN.holds("Save lets readers wait while it writes, and leaves half when it is cancelled.", CM4)
class LocksAndWrites(SoundChat):
    async def load(self) -> list[ChatMessage]:
        while f"{self.session}/locked" in self.store:
            await asyncio.sleep(0)
        return await super().load()

    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept = self.kept(messages)
        self.store[f"{self.session}/locked"] = []
        try:
            for place in range(min(len(kept), 10)):
                self.store[self.session] = kept[:place]
                await asyncio.sleep(0)
            self.store[self.session] = kept
        finally:
            self.store.pop(f"{self.session}/locked", None)


@BROKEN.holds("Save keeps what another save adds while it runs.", CM4)
class MergesWithAnother(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept, known = self.kept(messages), len(self.store.get(self.session, []))
        await asyncio.sleep(0)
        self.store[self.session] = [*kept, *self.store.get(self.session, [])[known:]]


@BROKEN.holds("Save deletes in one transaction and writes in a second one.", CM4)
class TwoTransactions(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept = self.kept(messages)
        self.store.pop(self.session, None)
        await asyncio.sleep(0)
        self.store[self.session] = kept


@BROKEN.holds("Save writes each message to its position, so that two saves at once are mixed.", CM4)
class RowsWithoutATransaction(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        kept = self.kept(messages)
        for place, message in enumerate(kept):
            rows = self.store.setdefault(self.session, [])
            rows[place : place + 1] = [message]
            if place < 10:
                await asyncio.sleep(0)
        self.store[self.session][len(kept) :] = []


@BROKEN.holds("Save writes the messages before the first one that it refuses.", CM4)
class NoWayBack(SoundChat):
    async def save(self, messages: Sequence[ChatMessage]) -> None:
        for place in range(min(len(messages), 10)):
            await super().save(messages[:place])
        await super().save(messages)


@BROKEN.holds("A new conversation is None.", CM5)
class NothingIsNone(SoundChat):
    async def load(self) -> Any:
        return await super().load() if self.session in self.store else None

    async def clear(self) -> None:
        self.store[self.session] = []


@BROKEN.holds("A new conversation is an error.", CM5)
class NothingIsAnError(SoundChat):
    async def load(self) -> list[ChatMessage]:
        return self.shown(self.store[self.session])

    async def clear(self) -> None:
        self.store[self.session] = []
