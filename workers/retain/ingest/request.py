"""Read a request's JSON as it arrives: member by member, and one list item by item.

A body of 50 MiB, as one text and as parsed values, would exceed an isolate's memory. Here only the last piece that
arrived and one value of at most MAX_VALUE_CHARACTERS are in memory.
"""

from __future__ import annotations

import codecs
import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass

from retain.json_text import MAX_NESTING, RepeatedName, distinct, read_json

MAX_VALUE_CHARACTERS = 256 * 1024
"""Longest value that is kept, in characters of JSON: a message of 32 KiB, every character of it escaped, has fewer."""

_SPACE = re.compile(r"[ \t\n\r]*")
_IN_STRING = re.compile(r'[^"\\]*+(?:\\[\s\S][^"\\]*+)*+')  # possessive, so without backtracking
_MARK = re.compile(r'["\[\]{}]')
_SCALAR_END = re.compile(r"[ \t\n\r,\]}]")


@dataclass(frozen=True, slots=True)
class Oversized:
    """A value that is too long to be kept. digest: the SHA-256 of its text, in hexadecimal."""

    digest: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of the request's object, or an item of its list. value: parsed. item: whether it is an item."""

    name: str
    value: object
    item: bool


async def read_members(pieces: AsyncIterator[bytes], listed: str) -> AsyncIterator[Member]:
    """Yield the members of a JSON object in order; for the member `listed`, if it is a list, [] and then its items.

    A value that is too long is yielded as `Oversized`.
    Raises: ValueError when the text is not UTF-8 or not a JSON object, nested too deeply, or has two members of one
        name in an object.
    """
    text = _Text(pieces)
    await text.expect("{")
    seen: set[str] = set()
    closed = await text.skip("}")
    while not closed:
        if await text.ahead() != '"':
            raise ValueError("a member has no name")
        name = await text.value()
        if not isinstance(name, str):
            raise ValueError("a member's name is too long")
        await text.expect(":")
        if name in seen:
            raise RepeatedName
        seen.add(name)
        if name == listed and await text.skip("["):
            yield Member(name, [], item=False)
            ended = await text.skip("]")
            while not ended:
                yield Member(name, await text.value(), item=True)
                ended = await text.closes("]")
        else:
            yield Member(name, await text.value(), item=False)
        closed = await text.closes("}")
    if await text.ahead():
        raise ValueError("something follows the object")


class _Text:
    """The unread text of the pieces that arrived."""

    def __init__(self, pieces: AsyncIterator[bytes]) -> None:
        self._pieces = pieces
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")("strict")
        self._buffer = ""
        self._at = 0
        self._ended = False

    async def ahead(self) -> str:
        """Return the next character that is not white space, "" at the end."""
        while True:
            self._at = _end(_SPACE.match(self._buffer, self._at))
            if self._at < len(self._buffer):
                return self._buffer[self._at]
            if not await self._more():
                return ""

    async def skip(self, mark: str) -> bool:
        """Skip the mark if it comes next; return whether it did."""
        if await self.ahead() != mark:
            return False
        self._at += 1
        return True

    async def expect(self, mark: str) -> None:
        if not await self.skip(mark):
            raise ValueError(f"{mark} is missing")

    async def closes(self, mark: str) -> bool:
        """Skip the mark and return True, or else skip a comma and return False. Raises: ValueError without either."""
        if await self.skip(mark):
            return True
        await self.expect(",")
        return False

    async def value(self) -> object:
        """Read one value and return it parsed."""
        first = await self.ahead()
        whole = await (self._scalar() if first not in ('"', "[", "{") else self._marked())
        return read_json(whole, on_pairs=distinct) if isinstance(whole, str) else whole

    async def _scalar(self) -> str | Oversized:
        kept = _Kept()
        while (end := _SCALAR_END.search(self._buffer, self._at)) is None:
            kept.add(self._taken(len(self._buffer)))
            if not await self._more():
                return kept.whole()
        kept.add(self._taken(end.start()))
        return kept.whole()

    async def _marked(self) -> str | Oversized:
        """Read a string, a list or an object up to its closing mark."""
        kept, depth, in_string = _Kept(), 0, False
        while True:
            end, depth, in_string, closed = self._scanned(self._at, depth, in_string)
            kept.add(self._taken(end))
            if closed:
                return kept.whole()
            if not await self._more():
                raise ValueError("the text ends within a value")

    def _scanned(self, at: int, depth: int, in_string: bool) -> tuple[int, int, bool, bool]:
        """Return how far the value extends in the buffer, and there its depth, whether in a string, and whether it ends.

        If what follows a backslash has not arrived yet, the backslash is left unread.
        """
        while at < len(self._buffer):
            if in_string:
                at = _end(_IN_STRING.match(self._buffer, at))
                if at == len(self._buffer) or self._buffer[at] != '"':
                    return at, depth, True, False
                at, in_string = at + 1, False
            else:
                mark = _MARK.search(self._buffer, at)
                if mark is None:
                    return len(self._buffer), depth, False, False
                at, in_string = mark.end(), mark[0] == '"'
                depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark[0], 0)
                if depth > MAX_NESTING:
                    raise ValueError(f"nested deeper than {MAX_NESTING} levels")
            if depth == 0 and not in_string:
                return at, depth, False, True
        return at, depth, in_string, False

    def _taken(self, end: int) -> str:
        """Return the unread text up to `end`, and mark it as read."""
        part, self._at = self._buffer[self._at : end], end
        return part

    async def _more(self) -> bool:
        """Append the next piece to the unread text; return False at the end of the request."""
        while not self._ended:
            piece = await anext(self._pieces, None)
            self._ended = piece is None
            text = self._decoder.decode(piece or b"", final=self._ended)
            if text:
                self._buffer, self._at = self._buffer[self._at :] + text, 0
                return True
        return False


def _end(found: re.Match[str] | None) -> int:
    assert found is not None  # the pattern matches the empty text
    return found.end()


class _Kept:
    """The parts of one value: all of them, or only their digest once they are too long."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._characters = 0
        self._digest = hashlib.sha256()

    def add(self, part: str) -> None:
        self._characters += len(part)
        self._digest.update(part.encode("utf-8", "surrogatepass"))
        if self._characters > MAX_VALUE_CHARACTERS:
            self._parts.clear()
        else:
            self._parts.append(part)

    def whole(self) -> str | Oversized:
        if self._characters > MAX_VALUE_CHARACTERS:
            return Oversized(self._digest.hexdigest())
        return "".join(self._parts)
