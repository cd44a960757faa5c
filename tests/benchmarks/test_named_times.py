"""The benchmark of questions for a time reads its data set, and says how much of the best is of that time."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.named_times import measure, read

_TURNS = [
    ("6:00 PM on 3 May, 2023", ["Hi Ann!", "I planted two apple trees in the garden this morning."]),
    ("6:00 PM on 9 June, 2023", ["Hello!", "My sister opened a bakery near the harbour last week."]),
]


def written(folder: Path) -> Path:
    """Write two conversations of one pair of friends, and questions for the second, as the data set has them."""
    sessions: dict[str, object] = {"speaker_a": "Ann", "speaker_b": "Bob"}
    number = 0
    for session, (at, texts) in enumerate(_TURNS, start=1):
        sessions[f"session_{session}_date_time"] = at
        sessions[f"session_{session}"] = [
            {"speaker": "Bob", "text": text, "response_number": str(number + place)} for place, text in enumerate(texts)
        ]
        number += len(texts)
    (folder / "ConversationData").mkdir()
    (folder / "ConversationData" / "26.json").write_text(json.dumps(sessions))
    question = {"questions": ["What did we discuss last time?"] * 2, "relevant_docs": [2, 3]}
    for form in ("content_time_qs/content_time_qs", *(f"time_qs/test_{form}" for form in (
        "dates", "date_span", "month", "rel_day", "rel_month", "day_span", "last_named_day", "earlier_today", "session",
        "session_span", "rel_session",
    ))):  # fmt: skip
        path = folder / "TestData" / f"{form}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"file_26": [question] if form.endswith("rel_session") else []}))
    return folder


async def test_the_share_of_the_best_that_were_said_then(tmp_path: Path) -> None:
    [conversation] = read(written(tmp_path))
    assert [item["id"] for item in conversation["items"]] == ["0", "1", "2", "3"]
    assert [question["text"] for question in conversation["questions"]] == ["What did we discuss last time?"], (
        "once each"
    )
    for at_once in (False, True):
        scores = await measure(tmp_path, at_once=at_once)
        assert scores["retain", "rel_session"] == [[1.0, 1.0, 1.0]]
