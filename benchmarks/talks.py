"""Measure recall in a talk: no question is asked, and what is remembered should fit what was just said.

The data are MADial-Bench's (MIT, https://github.com/hejunqing/MADial-Bench), which stays outside the repository: 160 dated
memories of two people, and 160 talks of one of them with an assistant, in English and in Chinese. The evidence of a talk are
the memories that would fit the assistant's next words. Each person is a tenant, each memory a record outside conversations,
stored on its day. Retain is asked with the last words as the query and what was said before them as its context; full text,
vectors and rank fusion with the whole talk, as the rankings that the data set has of larger embedding models were made.

    python -m benchmarks.talks path/to/MADial-Bench [--chinese]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recall import MEASURES, METHODS, MOST, ROOT, full_text, fused, load, measures, vectors
from retain.json_text import read_own_json
from retain.memory.semantic import RecallQuery
from retain.models.embedders.static import MODEL, MULTILINGUAL, StaticEmbedder, table_file

_TURN = re.compile(r'<([^>]+)>\s*[:\uff1a]\s*"?(.*?)"?', re.DOTALL)
_NO_TURN = "<BOD>"
_PUBLISHED = {
    "en": ("openai_top_20_bottom", "bge_m3_top_20", "gte_top_20", "jina_top_20"),
    "ch": ("openai_zh_top_20_ids", "Stella_zh_top_20_ids", "BGE_M3_dense_zh_top_20_ids", "Dmeta_zh_top_20_ids"),
}
"""The rankings of the data set, by its name of the language: of OpenAI's embeddings and of open models."""

Results = Mapping[str, Sequence[tuple[float, ...]]]
"""By method: the measures of each talk."""


def lines(path: Path) -> list[Any]:
    """Return the values of a file with one of JSON per line."""
    return [read_own_json(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def read(folder: Path, *, chinese: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the two people as `benchmarks.recall` has conversations. folder: a clone of the data set."""
    language, short = ("ch", "zh") if chinese else ("en", "en")
    within = folder / "data" / language
    talks = lines(within / f"MADial-Bench-{short}-dialogue.json")
    remembered = {key: one for line in lines(within / f"MADial-Bench-{short}-memory.json") for key, one in line.items()}
    for person in sorted({talk["user-id"] for talk in talks}):
        name = _of(person, talks)[0]["dialogue"][1].partition(">")[0].lstrip(" <")
        items = [
            {"id": key, "session": None, "at": one["time"], "speaker": None, "text": one["event"]}
            for key, one in sorted(remembered.items(), key=lambda pair: pair[1]["time"])
            if name in one["event"]
        ]
        yield {"items": items, "questions": [_question(talk) for talk in _of(person, talks)]}


def _of(person: int, talks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [talk for talk in talks if talk["user-id"] == person]


def _question(talk: Mapping[str, Any]) -> dict[str, Any]:
    """Return the last words before the turn that the data set asks for, and the turns before them."""
    turns = [turn.strip() for turn in talk["dialogue"][: talk["test-turn"][0]] if turn.strip() != _NO_TURN]
    spoken = [found.groups() if (found := _TURN.fullmatch(turn)) else ("", turn) for turn in turns]
    return {
        "text": spoken[-1][1],
        "context": [f"{speaker}: {words}" for speaker, words in spoken[:-1]],
        "evidence": [str(one) for one in talk["relevant-id"]],
    }


async def measure(folder: Path, *, chinese: bool = False) -> Results:
    """Return the measures of every talk, by method. folder: a clone of the data set."""
    embedder = StaticEmbedder(ROOT / "models" / table_file(MULTILINGUAL if chinese else MODEL))
    results: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for number, person in enumerate(read(folder, chinese=chinese)):
        loaded = await load(number, person, embedder)
        for question in person["questions"]:
            whole = "\n".join([*question["context"], question["text"]])
            text, near = full_text(loaded, whole, None), await vectors(loaded, embedder, whole, None)
            hits = await loaded.memory.search(RecallQuery(question["text"], MOST, context=question["context"]))
            own = [loaded.item_of[hit.record.id] for hit in hits]
            for method, ranking in zip(METHODS, (text, near, fused([text, near]), own), strict=True):
                results[method].append(measures(ranking, question["evidence"]))
    language = "ch" if chinese else "en"
    for name in _PUBLISHED[language]:
        path = folder / "embeddings" / language / f"{name}.json"
        for one in lines(path) if path.exists() else ():
            keys = ("top-20-ids", "relevant-id") if "relevant-id" in one else ("top_20_ids", "relevant_id")
            ranking, evidence = ([*map(str, one[key])] for key in keys)
            results[name].append(measures(ranking, evidence))
    return results


def main() -> None:
    """Print the table. A published ranking has twenty memories, so its R@30 is that of twenty."""
    parser = argparse.ArgumentParser(description="Measure recall in talks.")
    parser.add_argument("data", type=Path, help="a clone of MADial-Bench")
    parser.add_argument("--chinese", action="store_true", help="the talks in Chinese, with the multilingual table")
    options = parser.parse_args()
    print("".ljust(32) + "".join(f"{name:>9}" for name in MEASURES))
    for method, scores in asyncio.run(measure(options.data, chinese=options.chinese)).items():
        means = [100 * statistics.fmean(column) for column in zip(*scores, strict=True)]
        print(method.ljust(32) + "".join(f"{mean:9.1f}" for mean in means))


if __name__ == "__main__":
    main()
