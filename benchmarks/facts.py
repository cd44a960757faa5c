"""Which facts the rules of ingest find in conversations of people, a line for each: `diff` compares two versions.

    PYTHONPATH=workers:. .venv/bin/python -m benchmarks.facts dataset.json > facts.txt

The file is that of the package `chitchat-dataset` (MIT): conversations, each a list of turns, each a list of messages with a
`text`. What the facts are worth is for a reader to judge, so each comes with its text. Counts go to the standard error.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from retain.ingest.extraction import SourceMessage
from retain.ingest.extractors.rule_extractor import facts_of
from retain.json_text import read_own_json


def texts_of(conversations: dict[str, Any]) -> Iterator[str]:
    """Yield each text of the conversations once, in their order."""
    seen = set[str]()
    for conversation in conversations.values():
        for turn in conversation["messages"]:
            for message in turn:
                if message["text"] not in seen:
                    seen.add(message["text"])
                    yield message["text"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the facts of a file's messages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("conversations", type=Path)
    texts = list(texts_of(read_own_json(parser.parse_args(arguments).conversations.read_text("utf-8"))))
    found = Counter[str]()
    for text in texts:
        for fact in facts_of(SourceMessage("message", "X", text)):
            found[fact.predicate.partition(":")[0]] += 1
            print(f"{fact.predicate}\t{fact.content}\t{' '.join(text.split())}")
    print(f"{len(texts)} messages, {found.total()} facts: {dict(found.most_common())}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
