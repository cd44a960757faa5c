"""Measure what the same memories find: R@10 and NDCG@10 of LangGraph's store, mem0, full text alone and Retain.

    python -m benchmarks.memories.quality DATA [--only NAME] [--conversations N] [--cache FOLDER]

DATA is a folder of `benchmarks.recall`, whose full text alone, vectors, and Retain these are, in the same run. LangGraph's
store and mem0 get each item as it is, with its number; a question that may only search what was said
before it has that as a filter. All embed with the same local table. mem0 stores without a language model (`infer=False`),
and without its search by keywords, which is another package with a model to download.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path

from benchmarks.harness.report import markdown
from benchmarks.memories.processes import LANGGRAPH, MEM0, TABLE, asked, found, running
from benchmarks.recall import conversations, full_text, load, measures, vectors, within_limit
from retain.memory.semantic import RecallQuery
from retain.models.embedders.static import StaticEmbedder

RETAIN, FULL_TEXT, VECTORS = "Retain", "full text alone", "vectors alone"
METHODS = (RETAIN, LANGGRAPH, MEM0, FULL_TEXT, VECTORS)
MOST = 10
_R_10, _NDCG = 1, 3


async def measure(path: Path, most: int, cache: Path | None) -> Mapping[str, Sequence[tuple[float, ...]]]:
    """Return the measures of each question by method. most: conversations."""
    embedder = StaticEmbedder(TABLE)
    scores: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for number, conversation in enumerate(islice(conversations(path), most)):
        kept = None if cache is None else cache / f"quality-{path.name.partition('.')[0]}-{number}"
        loaded = await load(number, conversation, embedder, kept)
        items, questions = conversation["items"], conversation["questions"]
        with running((LANGGRAPH, MEM0)) as processes:
            rankings: dict[str, list[list[str]]] = {}
            for name, process in processes.items():
                asked(process, {"fill": [within_limit(item["text"]) or " " for item in items]})
                answers = found(process, [(question["text"], question["before"]) for question in questions])
                rankings[name] = [[items[place]["id"] for place in answer] for answer in answers]
        for place, question in enumerate(questions):
            before = question["before"]
            as_of_ms = None if before is None else loaded.recorded_ms[before] - 1
            hits = await loaded.memory.search(RecallQuery(question["text"], MOST, as_of_ms))
            by_method = {
                RETAIN: [loaded.item_of[hit.record.id] for hit in hits],
                **{name: ranking[place] for name, ranking in rankings.items()},
                FULL_TEXT: full_text(loaded, question["text"], before),
                VECTORS: await vectors(loaded, embedder, question["text"], as_of_ms),
            }
            for method, ranking in by_method.items():
                scores[method].append(measures(ranking, question["evidence"]))
    return scores


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of *.jsonl.gz files")
    parser.add_argument("--only", help="measure only files whose name contains this")
    parser.add_argument("--conversations", type=int, default=1000, help="the first so many of each file")
    parser.add_argument("--cache", type=Path, help="folder for the databases that Retain's were loaded into")
    options = parser.parse_args()
    files = sorted(path for path in options.data.glob("*.jsonl.gz") if re.search(options.only or "", path.name))
    if not files:
        raise SystemExit(f"there is no benchmark data in {options.data}: give the folder of *.jsonl.gz files")
    rows = []
    for path in files:
        scores = asyncio.run(measure(path, options.conversations, options.cache))
        for column, measured in ((_R_10, "R@10"), (_NDCG, "NDCG@10")):
            means = [100 * statistics.fmean(one[column] for one in scores[method]) for method in METHODS]
            name = f"{path.name.removesuffix('.jsonl.gz')}, {measured} of {len(scores[RETAIN])} questions"
            rows.append([name, *(f"{mean:.1f}" for mean in means)])
        print(markdown(["", *METHODS], rows), flush=True)


if __name__ == "__main__":
    main()
