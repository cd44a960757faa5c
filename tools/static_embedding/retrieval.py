"""Measure how well a table alone finds the evidence for questions about long conversations.

    python -m tools.static_embedding.retrieval models/static-minilm-256-i8.bin locomo.jsonl.gz

A file holds one conversation per line: `items` (`id`, `at`, `speaker`, `text`) and `questions` (`text`, `before`: only
items before this one may be found, or null; `evidence`: ids). A question's score is the share of its evidence among
the first ten items; the figure is the mean over questions. Date and speaker precede an item's text.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
from operator import mul
from pathlib import Path
from typing import Any

from retain.models.embedders.static import StaticEmbedder, StaticTable

_FIRST = 10


async def _scores(embedder: StaticEmbedder, conversation: dict[str, Any]) -> list[float]:
    items = conversation["items"]
    vectors = await embedder.embed([f"{item['at']} {item['speaker']}: {item['text']}" for item in items])
    questions = [question for question in conversation["questions"] if question["evidence"]]
    scores = []
    for question, wanted in zip(questions, await embedder.embed([q["text"] for q in questions]), strict=True):
        similarity = [sum(map(mul, wanted, vector)) for vector in vectors[: question["before"]]]
        best = sorted(range(len(similarity)), key=similarity.__getitem__, reverse=True)[:_FIRST]
        found = {items[place]["id"] for place in best}
        scores.append(sum(name in found for name in question["evidence"]) / len(question["evidence"]))
    return scores


def main() -> None:
    """Print the recall at ten of each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("conversations", type=Path, nargs="+")
    options = parser.parse_args()
    dimensions = StaticTable.unpack(options.table.read_bytes()).dimensions
    embedder = StaticEmbedder(options.table, dimensions=dimensions)
    for path in options.conversations:
        with gzip.open(path, "rt") as lines:
            scores = [score for line in lines for score in asyncio.run(_scores(embedder, json.loads(line)))]
        print(f"{path.name}: recall at {_FIRST} {100 * sum(scores) / len(scores):.1f} ({len(scores)} questions)")


if __name__ == "__main__":
    main()
