"""What readers of items may see, as plainly as it can be said: no keys, no tiers, no phases.

An item has a value that readers see for sure. Where an operation failed halfway, or an erasure is under way, there are
others that they may see instead. Below it lie older values that a legacy key may still hold; only the erasure of what
hides them can show them, and only if they are another user's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, order=True)
class ItemName:
    """An item: whose it is, and where."""

    tenant: str
    session: str
    kind: str

    @property
    def key(self) -> str:
        """The canonical key."""
        return f"shop:{self.tenant}:{self.session}:{self.kind}:one"

    @property
    def legacy(self) -> list[str]:
        """The legacy keys, in the order in which they are read."""
        first = f"{self.tenant}:{self.session}:{self.kind}:one"
        return [first, f"old/{self.tenant}/{self.kind}/one"] if self.session == "s-1" else [first]


@dataclass(frozen=True, slots=True)
class Cell:
    """A value that was given to Retain once. marker: unique. names: the users whom its text names.

    second: it lies under the second pattern's key alone, which reads do not ask before phase 1. row: D1 knows its owner.
    """

    marker: str
    text: str
    at_ms: int
    owner: str | None = None
    names: frozenset[str] = frozenset()
    expires_at_ms: int | None = None
    pii: bool = False
    second: bool = False
    row: bool = True

    def concerns(self, match: str, user: str) -> bool:
        """Return whether an erasure of the user by `subject`, `user` or `mention` must erase it."""
        if match == "tenant":
            return True
        mine = self.row and self.owner == user
        return mine or (match == "mention" and user in self.names)


@dataclass
class ItemModel:
    """One item. stale_until_ms: until then a session may see an older value, because a writer died or KV failed."""

    sure: Cell | None = None
    maybe: set[Cell | None] = field(default_factory=set)
    below: set[Cell] = field(default_factory=set)
    loose: set[Cell] = field(default_factory=set)
    history: list[Cell] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)
    stale_until_ms: int = 0

    @property
    def untouched(self) -> bool:
        """Whether nothing was ever stored for it."""
        return not self.history

    def possible(self) -> set[Cell | None]:
        """Return every value that may be the item's, None for none."""
        return {self.sure, *self.maybe}

    def shown(self, both: tuple[bool, bool], now_ms: int) -> set[str | None]:
        """Return what a reader with these flags may see."""
        found: set[str | None] = set()
        for cell in self.possible():
            visible = cell is not None and (cell.expires_at_ms is None or now_ms < cell.expires_at_ms)
            found.add(cell.text if cell is not None and visible else None)
            if cell is not None and cell.second and both == (False, False):
                found.add(None)
        if both == (True, False) and self.maybe:
            found.add(None)
        return found

    def put(self, cell: Cell) -> None:
        """Note an acknowledged write."""
        self.below |= {one for one in self.possible() if one is not None} | self.loose
        self.sure, self.maybe, self.loose = cell, set(), set()

    def tried_put(self, cell: Cell) -> None:
        """Note a write that was not acknowledged."""
        self.maybe.add(cell)

    def removed(self) -> None:
        """Note that the item is gone, with everything below it. What no row knows stays where it is."""
        known = {one for one in (*self.possible(), *self.below) if one is not None}
        if known:
            known |= self.loose
            self.loose = set()
        self.gone |= {cell.marker for cell in known}
        self.sure, self.maybe, self.below = None, set(), set()

    def tried_removal(self) -> None:
        """Note a removal that was not acknowledged."""
        self.maybe.add(None)

    def begin_erasure(self, match: str, user: str) -> None:
        """Note that an erasure began: what it concerns may vanish from now on, and show what it hid."""
        if any(cell is not None and cell.concerns(match, user) for cell in self.possible()):
            self.maybe |= {None, *self._revealed(match, user)}

    def end_erasure(self, match: str, user: str, began: Iterable[str]) -> None:
        """Note that it is complete. began: the markers of what was stored before it began."""
        before = set(began)

        def erased(cell: Cell | None) -> bool:
            return cell is not None and cell.marker in before and cell.concerns(match, user)

        hit = erased(self.sure)
        revealed = self._revealed(match, user)
        everything = {one for one in (*self.possible(), *self.below, *self.loose) if one is not None}
        self.gone |= {cell.marker for cell in everything if erased(cell)}
        self.maybe = {cell for cell in self.maybe if not erased(cell)}
        self.below = {cell for cell in self.below if not erased(cell)}
        self.loose = {cell for cell in self.loose if not erased(cell)}
        if match == "tenant":
            self.sure, self.maybe, self.below, self.loose = None, set(), set(), set()
        elif hit:
            self.sure = None
            self.maybe |= revealed
            if not self.maybe - {None}:
                self.removed()

    def _revealed(self, match: str, user: str) -> set[Cell]:
        owners = {cell.owner for cell in self.possible() if cell is not None}
        hidden = {cell for cell in (*self.below, *self.maybe) if cell is not None and not cell.concerns(match, user)}
        return {cell for cell in hidden if cell.owner is not None and owners - {cell.owner}}
