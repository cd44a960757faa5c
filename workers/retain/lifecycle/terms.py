"""Exact terms: whether a text or a JSON value names what is to be found, word by word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.memory.recall.words import words

MAX_TERM_BYTES = 512


@dataclass(frozen=True, slots=True)
class Term:
    """Words that stand next to each other. Case, diacritics and punctuation do not matter, parts of words do not count.

    So `ann@shop.example` is found in "From <Ann@shop.example>:" and not in "joann@shop.example".
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Term:
        """Return the term that a text is. Raises: InvalidInput (code `invalid_term`) when it has no word."""
        found = tuple(words(text)) if len(text.encode("utf-8", "replace")) <= MAX_TERM_BYTES else ()
        if not found:
            raise InvalidInput(f"a term has words, and at most {MAX_TERM_BYTES} bytes", code="invalid_term")
        return cls(found)

    def in_text(self, text: str) -> bool:
        """Tell whether the text names the term."""
        found = words(text)
        first, length = self.words[0], len(self.words)
        return any(word == first and tuple(found[at : at + length]) == self.words for at, word in enumerate(found))

    def in_json(self, value: object) -> bool:
        """Tell whether a string of the value, or a key, names the term. A number counts as it is written."""
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
        """Tell whether stored text names the term: in the strings of JSON, or else in the text itself."""
        if text is None:
            return False
        try:
            return self.in_json(json.loads(text))
        except (ValueError, RecursionError):
            return self.in_text(text)
