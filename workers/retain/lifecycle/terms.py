"""Exact terms: whether a text or a JSON value contains given words, in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from retain.errors import InvalidInput
from retain.json_text import read_json_as_written
from retain.memory.recall.languages.han import simplified
from retain.memory.recall.words import fold, words_and_letters
from retain.memory.records.record import composed

MAX_TERM_BYTES = 512
_EMBEDDED = 8
"""Texts within texts that are read as JSON. Escapes of deeper ones are undone all the same, but only as in any text."""

_UNDIVIDED = str.maketrans("\u0131\u0142\u00f8\u0111", "ilod")
"""Letters with a stroke, and i without its dot: Unicode does not divide them into a letter and a sign."""
# A run of backslashes is matched from its first one only, so the search is linear in it.
_CODE = re.compile(r"(?<!\\)\\++u([0-9a-fA-F]{4})")
_BREAK = re.compile(r"(?<!\\)\\++[bfnrt]")


@dataclass(frozen=True, slots=True)
class Term:
    """Adjacent words. Case, diacritics and punctuation do not matter; parts of words do not match.

    So `ann@shop.example` is found in "From <Ann@shop.example>:" and not in "joann@shop.example". In scripts without spaces
    between words (Chinese, Japanese, Thai …) every letter is a word, with or without spaces between; a traditional Chinese
    one is the simplified one.
    """

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Term:
        """Return the term of a text's words. Raises: InvalidInput (code `invalid_term`) for no words or too many bytes."""
        found = tuple(_words(text)) if len(text.encode("utf-8", "replace")) <= MAX_TERM_BYTES else ()
        if not found:
            raise InvalidInput(
                f"a term needs at least one word, and has at most {MAX_TERM_BYTES} bytes", code="invalid_term"
            )
        return cls(found)

    def in_text(self, text: str) -> bool:
        """Return whether the text names the term: as it is, with the escapes of JSON undone, or in JSON that it is."""
        return self._in(text, _EMBEDDED)

    def in_json(self, value: object) -> bool:
        """Return whether a string or a key of the value names the term. A number is compared as Python writes it."""
        return self._in(value, _EMBEDDED)

    def in_stored(self, text: str | None) -> bool:
        """Return whether stored text names the term: in its strings and numbers if it is JSON, else in the text itself."""
        if text is None:
            return False
        try:
            return self.in_json(read_json_as_written(text))
        except ValueError:
            return self.in_text(text)

    def _in(self, value: object, embedded: int) -> bool:
        sought = _joined(self.words)
        pending = [(value, embedded)]
        while pending:
            one, levels = pending.pop()
            if isinstance(one, Mapping):
                pending += [(part, levels) for pair in one.items() for part in pair]
            elif isinstance(one, Sequence) and not isinstance(one, str):
                pending += [(part, levels) for part in one]
            elif one is not None:
                text = str(one)
                if any(sought in _joined(_words(form)) for form in _forms(text)):
                    return True
                if levels and "\\" in text:
                    pending += [(part, levels - 1) for part in _embedded(text)]
        return False


def is_subject(found: object, wanted: str) -> bool:
    """Return whether what a record has as its subject is the wanted one, in whichever Unicode normal form each is."""
    return isinstance(found, str) and composed(found) == composed(wanted)


def _words(text: str) -> list[str]:
    folded = fold(text)
    return words_and_letters(folded if folded.isascii() else simplified(folded.translate(_UNDIVIDED)))


def _joined(found: Sequence[str]) -> str:
    return f" {' '.join(found)} "


def _forms(text: str) -> Iterator[str]:
    r"""Yield the text, then with `\u00eb` as its letter, then also with `\n` as a space: it may be JSON, or a part of it.

    Each form is needed: in `CORP\noah` there is no line break.
    """
    yield text
    if "\\" not in text:
        return
    lettered = _CODE.sub(lambda found: chr(int(found[1], 16)), text)
    if lettered != text:  # two codes may be one letter
        lettered = lettered.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        yield lettered
    broken = _BREAK.sub(" ", lettered)
    if broken != lettered:
        yield broken


def _embedded(text: str) -> Sequence[object]:
    """Return the value of a text that is a list, an object or a string in JSON, in a list; an empty one for any other."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return ()
    try:
        return (read_json_as_written(text),)
    except ValueError:
        return ()
