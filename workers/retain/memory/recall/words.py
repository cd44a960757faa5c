"""Words of a text as the index has them: folded, stemmed and prefixed with their scope's tag."""

from __future__ import annotations

import re
import unicodedata
from base64 import b32encode
from functools import lru_cache
from hashlib import sha256
from itertools import pairwise

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
"""English words that do not indicate what a text is about."""

_UNSPACED = (
    "\u0e01-\u0e4e\u0e81-\u0ece\u0edc-\u0edf"  # Thai, Lao
    "\u1000-\u103f\u1050-\u108f\u1780-\u17d3\u17d7\u17dc\u17dd"  # Myanmar, Khmer
    "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3105-\u312f\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"  # Chinese
)
"""Letters, and signs on them, of scripts without spaces between words."""
_WORD = re.compile(r"[^\W_]+")
_RUN = re.compile(f"[{_UNSPACED}]+")
_WORD_OR_LETTER = re.compile(f"[{_UNSPACED}]|(?:(?![{_UNSPACED}])[^\\W_])+")
_WORD_OR_RUN = re.compile(f"([{_UNSPACED}]+)|(?:(?![{_UNSPACED}])[^\\W_])+")


def fold(text: str) -> str:
    """Return the text without case and diacritics, so that FTS5's `unicode61` finds nothing left to fold.

    Lower case would not be enough: it has two forms of the Greek sigma, one of them for the end of a word.
    """
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFD", text.casefold()) if not unicodedata.combining(c))


def words(text: str) -> list[str]:
    """Return the folded words of a text, in order.

    A run of a script without spaces (Chinese, Japanese, Thai …) becomes all pairs of adjacent letters, so that a word is
    found inside a sentence; a run of one letter becomes that letter. Signs above and below the letters are left out,
    since FTS5 takes them for separators.
    """
    return _taken_apart(text)[0]


def indexed_words(text: str) -> list[str]:
    """Return the words that the index holds of a text: its words, in order, then the letters of its runs, each once.

    The letters make one-letter words findable in a sentence. They come after the words, so that phrases stay together.
    """
    found, letters = _taken_apart(text)
    return [*found, *letters]


def _taken_apart(text: str) -> tuple[list[str], list[str]]:
    """Return the words of a text, and the letters of its runs of more than one letter."""
    folded = fold(text)
    if folded.isascii() or _RUN.search(folded) is None:
        return _WORD.findall(folded), []
    found: list[str] = []
    single: dict[str, None] = {}
    for match in _WORD_OR_RUN.finditer(folded):
        letters = "" if match[1] is None else "".join(filter(str.isalnum, match[1]))
        if match[1] is None:
            found.append(match[0])
        elif len(letters) > 1:
            found += map("".join, pairwise(letters))
            single |= dict.fromkeys(letters)
        elif letters:
            found.append(letters)
    return found, list(single)


def words_and_letters(folded: str) -> list[str]:
    """Return the words of a folded text, in order; in a run of a script without spaces each letter is a word."""
    if folded.isascii():
        return _WORD.findall(folded)
    return [word for word in _WORD_OR_LETTER.findall(folded) if len(word) > 1 or word.isalnum()]


def telling(found: list[str]) -> list[str]:
    """Return those of the folded words that indicate what a text is about: neither stop words nor words of their stems.

    "Hi" is left out because its stem is that of "his", which nearly every text may have.
    """
    return [word for word in found if word not in STOP and stem(word) not in _stop_stems()]


@lru_cache(maxsize=1)
def _stop_stems() -> frozenset[str]:
    return frozenset(map(porter_stem, STOP))


def without_runs(text: str) -> str:
    """Return the text with its runs of scripts without spaces blanked out, which leaves the ids and addresses between."""
    return text if text.isascii() else _RUN.sub(" ", text)


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """Return the stem of a folded word."""
    return porter_stem(word)


def scope_tag(tenant_id: str, scope_id: str) -> str:
    """Return the eight letters that prefix every token of a scope in the full-text index.

    Two scopes may share a tag (once in 2^40), so tenant and scope of what is found are checked again.
    """
    return b32encode(sha256(f"{tenant_id}:{scope_id}".encode()).digest()[:5]).decode().lower()


USERS = "users"
"""All scopes of users in a tenant, for their words: not the id of any scope."""


def scope_tags(tenant_id: str, scope_id: str) -> list[str]:
    """Return the tags under which a scope's words are indexed.

    A user's words have two: a tenant may have more users than one recall could name, so that which searches the whole
    tenant finds them under the tag that all users have in common.
    """
    own = scope_tag(tenant_id, scope_id)
    return [own, scope_tag(tenant_id, USERS)] if scope_id.startswith("user.") else [own]


def indexed_text(tenant_id: str, scope_id: str, stems: list[str]) -> str:
    """Return the stems of a scope's record as the full-text index holds them, once under each of its tags."""
    return " ".join(tagged(tag, stems) for tag in scope_tags(tenant_id, scope_id))


def tagged(tag: str, stems: list[str]) -> str:
    """Return stems as the full-text index holds them: each as one token after the tag."""
    return " ".join([tag + found for found in stems])
