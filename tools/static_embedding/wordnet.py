"""WordNet's definitions and examples as short English texts.

Source: https://wordnet.princeton.edu/documentation/wndb5wn (the format of the `data.*` files).
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

SHORTEST_CHARACTERS = 16

_EXAMPLE = re.compile(r'"([^"]+)"')
_QUOTED = re.compile(r';?\s*"[^"]+"')
_MARKER = re.compile(r"\(\w+\)$")


def texts_of_line(line: str) -> Iterator[str]:
    """Yield the texts of one synset: its first word with the definition, the definition, its words, its examples."""
    head, _, gloss = line.partition("|")
    fields = head.split()
    count = int(fields[3], 16)
    words = [_MARKER.sub("", word).replace("_", " ") for word in fields[4 : 4 + 2 * count : 2]]
    definition = _QUOTED.sub("", gloss).strip(" ;\n")
    yield f"{words[0]}: {definition}"
    yield definition
    yield ", ".join(words)
    yield from _EXAMPLE.findall(gloss)


def texts(folder: Path) -> list[str]:
    """Return each distinct text of WordNet that is long enough to be meaningful, in a fixed shuffled order."""
    found: dict[str, None] = {}
    for path in sorted(folder.glob("data.*")):
        with path.open(encoding="latin-1") as lines:
            for line in lines:
                if not line.startswith("  "):  # the licence precedes the data
                    found.update(dict.fromkeys(texts_of_line(line)))
    kept = [text for text in found if len(text) >= SHORTEST_CHARACTERS]
    random.Random(0).shuffle(kept)  # noqa: S311 -- an order, not a secret
    return kept
