"""Words of a text as the index sees them: folded, stemmed, behind their scope's tag."""

from __future__ import annotations

import re
import unicodedata
from base64 import b32encode
from functools import lru_cache
from hashlib import sha256

from retain.memory.recall.stemmer import porter_stem

STOP = frozenset(
    (
        "a about after again all also am an and any are as at be because been before being but by can could did do "
        "does doing don down during each few for from further had has have having he her here hers him his how i if "
        "in into is it its itself just let me more most my no nor not now of off on once only or other our out over "
        "own s same she should so some such t than that the their them then there these they this those through to "
        "too under until up us very was we were what when where which while who whom why will with would you your "
        "yours ll m re ve d "
    ).split()
)
"""English words that say nothing about what a text is about."""

_WORD = re.compile(r"[^\W_]+")


def fold(text: str) -> str:
    """Return the text without case and diacritics, so that FTS5's `unicode61` finds nothing left to fold.

    Lower case would not do: a word that ends in a Greek sigma has two of them.
    """
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFD", text.casefold()) if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """Return the folded words of a text, in order."""
    return _WORD.findall(fold(text))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word."""
    return porter_stem(word)


def scope_tag(tenant_id: str, scope_id: str) -> str:
    """Return the eight letters that stand before every token of a scope in the full-text index.

    Two scopes may share a tag (once in 2^40): what is found is asked for tenant and scope again.
    """
    return b32encode(sha256(f"{tenant_id}:{scope_id}".encode()).digest()[:5]).decode().lower()


def tagged(tag: str, stems: list[str]) -> str:
    """Return stems as the full-text index holds them: each one token behind the tag."""
    return " ".join([tag + found for found in stems])
