"""The object of a fact as a key: facts whose objects have equal keys are about the same object.

Case, spaces and plain punctuation make no difference. What makes a text another one does: letters with their vowel signs,
and signs such as those of `C++`, `C#`, `A-`, `-5`, `5%` and `10³`. An emoji counts where there is nothing else.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

MAX_KEY_CHARACTERS: Final = 80
"""Largest length of a key."""
_RAISED = re.compile("(?<=\\d)(?=[\u00b2\u00b3\u00b9\u2070-\u207f])")
_APART = re.compile("(?<=\\d)(?=[\u2080-\u208e\u00bc-\u00be\u2150-\u215f\u2189])")
"""Where a number above, below or of a fraction follows a digit: in compatible form both would be one number."""
_NEXT_TO_DIGITS = "%^=\u00b1\u00d7\u00f7\u2030\u2200-\u22ff$\u00a2\u00a3\u00a5\u20a0-\u20cf"
_SIGN = re.compile(
    r"(?<=\w)(?:\+{2,}|[+#](?!\w))|(?<=\b[^\W\d_])#"  # C++17, A+, C#
    r"|(?:(?<=\b[^\W\d_])|(?<=\b[^\W\d_]{2}))-(?![\w-])"  # A-, AB-: longer words have a dash after them
    r"|(?<![^\s(])-(?=\.?\d)"  # -5, not 3-5
    rf"|(?<=\d)[<>{_NEXT_TO_DIGITS}]|(?!<3(?!\d))[<>{_NEXT_TO_DIGITS}](?=\d)"  # 5%, <5, not a heart
)
"""Signs that are part of a word. A plus before a number is not: +49 is 49."""
_MARKS = ("Mn", "Mc")
_NO_MARKS = re.compile("[\u0307\u034f\ufe00-\ufe0f\U000e0100-\U000e01ef]")
"""Marks that make no difference: choices of a glyph, and the dot that the small letter of a Turkish capital has."""


def key_of(text: str) -> str:
    """Return a text as part of a predicate: folded words joined by `_`; a long one is cut and ends with a digest."""
    key = key_words(text)
    if len(key) <= MAX_KEY_CHARACTERS:
        return key
    return f"{key[: MAX_KEY_CHARACTERS - 13]}_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def key_words(text: str) -> str:
    """Return the folded words of a text with their signs, joined by `_`, of any length; `_` for a text that has none."""
    folded = unicodedata.normalize("NFKC", _APART.sub(" ", _RAISED.sub("^", text))).casefold().replace("\u2212", "-")
    signs = {place for sign in _SIGN.finditer(folded) for place in range(*sign.span())}
    kept = "".join(c if place in signs or _is_of_word(c) else " " for place, c in enumerate(folded))
    return re.sub(" +", "_", kept).strip("_") or "".join(filter(_is_symbol, folded)) or "_"


def _is_of_word(c: str) -> bool:
    return c.isalnum() or c == "_" or (unicodedata.category(c) in _MARKS and _NO_MARKS.match(c) is None)


def _is_symbol(c: str) -> bool:
    return unicodedata.category(c).startswith("S")
