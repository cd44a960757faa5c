"""The object of a fact as a key: facts whose objects have equal keys are about the same object."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Final

MAX_KEY_CHARACTERS: Final = 80
"""Largest length of a key."""
NOT_IN_KEYS: Final = re.compile(r"[^\w]+")
"""What is between the words of a key."""


def key_of(text: str) -> str:
    """Return a text as part of a predicate: folded words joined by `_`; a long one is cut and ends with a digest."""
    key = NOT_IN_KEYS.sub("_", unicodedata.normalize("NFKC", text).casefold()).strip("_") or "_"
    if len(key) <= MAX_KEY_CHARACTERS:
        return key
    return f"{key[: MAX_KEY_CHARACTERS - 13]}_{hashlib.sha256(key.encode()).hexdigest()[:12]}"
