"""Measure recall on questions that ask for a time, or a conversation by its position, and for nothing else.

The data are TemporalMemoryDataset's (Alonso et al., https://arxiv.org/abs/2406.00057), which stays outside the repository:
twelve conversations of LoCoMo, and questions such as "What did we discuss 33 sessions ago?" with all turns of that time as
their evidence. Each wording that the data have is asked once. A question's score at k is the share of the best k, or of as
many as there is evidence, that belong to it. With `--at-once` everything is recorded a day after it was said.

    python -m benchmarks.named_times path/to/TemporalMemoryDataset
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recall import METHODS, MOST, ROOT, Loaded, full_text, fused, load, spoken_at, vectors
from retain.json_text import read_own_json
from retain.memory.recall.times.dates import DAY_MS, HOUR_MS
from retain.memory.semantic import RecallQuery
from retain.models.embedders.static import StaticEmbedder

TOP = (1, 5, 10)
_WITH_WORDS = "content_time_qs/content_time_qs"
_FORMS = ("dates", "date_span", "month", "rel_day", "rel_month", "day_span", "last_named_day", "earlier_today", "session",
          "session_span", "rel_session")  # fmt: skip

Scores = Mapping[tuple[str, str], Sequence[Sequence[float]]]
"""By method and form: the scores of each question at each of `TOP`."""


def read(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the conversations as `benchmarks.recall` has them. folder: a clone of the data set."""
    forms = {form: f"time_qs/test_{form}" for form in _FORMS} | {"words and a time": _WITH_WORDS}
    asked = {
        form: read_own_json((folder / "TestData" / f"{name}.json").read_text("utf-8")) for form, name in forms.items()
    }
    for path in sorted((folder / "ConversationData").glob("*.json")):
        sessions = read_own_json(path.read_text("utf-8"))
        yield {
            "items": [
                {
                    "id": str(turn["response_number"]),
                    "session": str(number),
                    "at": sessions[f"session_{number}_date_time"],
                    "speaker": turn["speaker"],
                    "text": turn["text"],
                }
                for number in range(1, len(sessions))
                for turn in sessions.get(f"session_{number}", ())
            ],
            "questions": [
                {"text": text, "form": form, "evidence": [str(one) for one in question["relevant_docs"]]}
                for form, questions in asked.items()
                for question in questions.get(f"file_{path.stem}", ())
                for text in dict.fromkeys(question["questions"])
            ],
        }


async def measure(folder: Path, *, at_once: bool, limit: int | None = None) -> Scores:
    """Ask every question of every conversation. limit: of conversations."""
    embedder = StaticEmbedder(ROOT / "models" / "static-minilm-256-i8.bin")
    scores: dict[tuple[str, str], list[Sequence[float]]] = defaultdict(list)
    for number, conversation in enumerate(read(folder)):
        if number == limit:
            break
        loaded = await load(number, conversation, embedder, later_ms=DAY_MS if at_once else None)
        asked_ms = max(spoken_at(item["at"]) or 0 for item in conversation["items"]) + HOUR_MS
        for question in conversation["questions"]:
            for method, ranking in (await _rankings(loaded, embedder, question["text"], asked_ms)).items():
                found = [_share(ranking, question["evidence"], top) for top in TOP]
                scores[method, question["form"]].append(found)
                scores[method, "all"].append(found)
    return scores


async def _rankings(loaded: Loaded, embedder: StaticEmbedder, question: str, asked_ms: int) -> dict[str, list[str]]:
    text, near = full_text(loaded, question, None), await vectors(loaded, embedder, question, None)
    hits = await loaded.memory.search(RecallQuery(question, MOST, today_ms=asked_ms))
    own = [loaded.item_of[hit.record.id] for hit in hits]
    return dict(zip(METHODS, (text, near, fused([text, near]), own), strict=True))


def _share(ranking: Sequence[str], evidence: Sequence[str], top: int) -> float:
    """Return the share of the best that are evidence, of as many as there may be."""
    wanted = set(evidence)
    return len(wanted.intersection(ranking[:top])) / min(top, len(wanted))


def show(scores: Scores) -> None:
    """Print a table of each form."""
    for form in dict.fromkeys(["all", *(form for _, form in scores)]):
        print(f"{form} ({len(scores['retain', form])})".ljust(30) + "".join(f"{f'of {top}':>8}" for top in TOP))
        for method in METHODS:
            means = [100 * statistics.fmean(column) for column in zip(*scores[method, form], strict=True)]
            print(f"  {method}".ljust(30) + "".join(f"{mean:8.1f}" for mean in means))


def main() -> None:
    """Measure a clone of the data set."""
    parser = argparse.ArgumentParser(description="Measure recall of what was said at a time.")
    parser.add_argument("data", type=Path, help="a clone of TemporalMemoryDataset")
    parser.add_argument("--at-once", action="store_true", help="record everything a day after it was said")
    parser.add_argument("--limit", type=int, help="so many conversations")
    options = parser.parse_args()
    if not (options.data / "ConversationData").is_dir():
        raise SystemExit(f"there is no data set in {options.data}: give a clone of TemporalMemoryDataset")
    show(asyncio.run(measure(options.data, at_once=options.at_once, limit=options.limit)))


if __name__ == "__main__":
    main()
