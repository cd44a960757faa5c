"""The compatible form of a text (NFKC), in which what is above, below, in a circle or a fraction keeps its form."""

from __future__ import annotations

import unicodedata
from itertools import groupby

_KEPT = frozenset(("<super>", "<sub>", "<circle>", "<fraction>"))
"""Forms that change what is said: 10³ is not 103, ①② not 12, and 1½ not 11/2.

Source: https://www.unicode.org/reports/tr44/#Character_Decomposition_Mappings
"""


def compatible(text: str, *, numbers_alone: bool = False) -> str:
    """Return the text in NFKC, with characters of these forms left as they are. numbers_alone: letters lose their form."""

    def is_kept(c: str) -> bool:
        return unicodedata.decomposition(c).partition(" ")[0] in _KEPT and (c.isnumeric() or not numbers_alone)

    if unicodedata.is_normalized("NFKC", text):
        return text
    parts = ((kept, "".join(run)) for kept, run in groupby(text, is_kept))
    return "".join(run if kept else unicodedata.normalize("NFKC", run) for kept, run in parts)
