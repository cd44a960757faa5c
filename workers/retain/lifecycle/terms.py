"""Exact terms: whether a text or a JSON value contains given words, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.json_text import read_json
from retain.memory.recall.words import words

MAX_TERM_BYTES = 512


@dataclass(frozen=True, slots=True)
class Term:
    """Adjacent words. Case, diacritics and punctuation do not matter; parts of words do not match.

    So `ann@shop.example` is found in "From <Ann@shop.example>:" and not in "joann@shop.example".
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Term:
        """Return the term of a text's words. Raises: InvalidInput (code `invalid_term`) for no words or too many bytes."""
        found = tuple(words(text)) if len(text.encode("utf-8", "replace")) <= MAX_TERM_BYTES else ()
        if not found:
            raise InvalidInput(
                f"a term needs at least one word, and has at most {MAX_TERM_BYTES} bytes", code="invalid_term"
            )
        return cls(found)

    def in_text(self, text: str) -> bool:
        """Return whether the text names the term."""
        found = words(text)
        first, length = self.words[0], len(self.words)
        return any(word == first and tuple(found[at : at + length]) == self.words for at, word in enumerate(found))

    def in_json(self, value: object) -> bool:
        """Return whether a string or a key of the value names the term. A number is compared as it is written."""
        pending = [value]
        while pending:
            one = pending.pop()
            if isinstance(one, Mapping):
                pending += [*one.keys(), *one.values()]
            elif isinstance(one, str):
                if self.in_text(one):
                    return True
            elif isinstance(one, Sequence):
                pending += one
            elif one is not None and self.in_text(str(one)):
                return True
        return False

    def in_stored(self, text: str | None) -> bool:
        """Return whether stored text names the term: in its strings if it is JSON, else in the text itself."""
        if text is None:
            return False
        try:
            return self.in_json(read_json(text))
        except ValueError:
            return self.in_text(text)
