"""The passage of a long text that answers a query best, when there is no room for the whole."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from retain.memory.recall.languages.detection import ENGLISH
from retain.memory.recall.languages.terms import detected, index_terms, language, telling_terms
from retain.memory.recall.preparation import cut

MARK = "[cut]"
"""Stands where text was left out."""
_PASSAGE_CHARACTERS = 400


def excerpt(text: str, query: str, limit_bytes: int) -> str:
    """Return the text if it has at most `limit_bytes` bytes, otherwise a passage of it within them, marked where it is cut.

    The passage begins where most of the query's words are, by rarity in this text, or with the text if it has none of
    them. Words are compared by their stems in the text's language. The mark counts; a limit with no room for it gives the
    mark alone.
    """
    if len(text.encode("utf-8", "replace")) <= limit_bytes:
        return text
    passages = cut(text, _PASSAGE_CHARACTERS)
    first = _best(passages, language(text), telling_terms(query, detected(query)))
    front = f"{MARK} " if first else ""
    room = limit_bytes - len(f"{front} {MARK}")
    rest = " ".join(passages[first:])
    if first and len(rest.encode("utf-8", "replace")) + len(front) <= limit_bytes:
        return front + rest
    if room <= 0:
        return MARK
    return f"{front}{rest.encode('utf-8', 'replace')[:room].decode('utf-8', 'ignore')} {MARK}"


def _best(passages: Sequence[str], code: str, wanted: Mapping[str, Sequence[str]]) -> int:
    """Return the number of the passage with most of the words, each weighed by how few passages have it.

    code: of the text's language. wanted: the terms of the words, each with its other forms. The plain terms count as well:
    the language of a query does not always show.
    """
    terms = [frozenset((*index_terms(passage, code), *index_terms(passage, ENGLISH))) for passage in passages]
    having = [{stem for stem, forms in wanted.items() if not there.isdisjoint((stem, *forms))} for there in terms]
    weight = {
        found: math.log(1 + len(passages) / sum(found in one for one in having)) for found in set().union(*having)
    }
    scores = [sum(weight[found] for found in sorted(one)) for one in having]
    return scores.index(max(scores))
