"""Write the talk of several people, with questions, in the form that `benchmarks.recall` measures.

Both data sets stay outside the repository, and no part of recall was chosen on them.

*FriendsQA* (Apache-2.0, https://github.com/emorynlp/FriendsQA): scenes of a television series, and questions with the
utterances that answer them. A memory is a season, a scene a conversation, and once more a record; the categories are the
first words of the questions.
*QMSum* (MIT, https://github.com/Yale-LILY/QMSum): transcripts of meetings, and what somebody who was away asks, with the
span of turns that answers it: 12 or 13 that say something, so the share that is found is small. A memory has ten meetings.

    python -m benchmarks.groups --scenes path/to/FriendsQA --meetings path/to/QMSum folder
    python -m benchmarks.recall folder --check
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from benchmarks.recall import write
from retain.json_text import read_own_json

MEETINGS = 10
"""How many meetings a memory has."""
SPEAKING = 8
"""A turn of fewer words ("Okay .") alone is evidence of nothing."""
_BEGINNING = date(2024, 1, 1)
_PARTS = ("dev", "tst")
_ASKED = ("what", "who", "where", "why", "how", "when")
_NOISE = re.compile(r"\{\w+\}")
_APART = re.compile(r" (n't|'s|'re|'ve|'ll|'m|'d|[.,!?;:%])")
_ONE_WORD = {"ca n't": "can't", "gon na": "gonna", "wan na": "wanna", "got ta": "gotta"}


def scenes(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a memory for each season. folder: a clone of FriendsQA."""
    every = [
        one for part in _PARTS for one in read_own_json((folder / f"dat/friendsqa_{part}.json").read_text())["data"]
    ]
    every.sort(key=lambda one: one["title"])
    memories: dict[str, dict[str, Any]] = {}
    for number, scene in enumerate(every):
        title, day = scene["title"], f"{_BEGINNING + timedelta(number)}"
        memory = memories.setdefault(title[:3], {"items": [], "questions": []})
        for paragraph in scene["paragraphs"]:
            for one in paragraph["utterances:"]:
                turn = {
                    "id": f"{title}:{one['uid']}",
                    "speaker": " and ".join(one["speakers"]),
                    "text": one["utterance"],
                }
                memory["items"].append(_item(turn, title, day))
            memory["questions"] += [_question(asked, title) for asked in paragraph["qas"]]
    yield from memories.values()


def whole(memory: Mapping[str, Any]) -> dict[str, Any]:
    """Return the memory with each conversation as one record, which is the evidence if one of its turns was."""
    spoken: dict[str, list[dict[str, Any]]] = {}
    for item in memory["items"]:
        spoken.setdefault(item["session"], []).append(item)
    of = {item["id"]: item["session"] for item in memory["items"]}
    items = [
        {
            "id": session,
            "session": None,
            "at": turns[0]["at"],
            "speaker": None,
            "text": "\n".join(f"{turn['speaker']}: {turn['text']}" for turn in turns),
        }
        for session, turns in spoken.items()
    ]
    questions = [{**one, "evidence": sorted({of[turn] for turn in one["evidence"]})} for one in memory["questions"]]
    return {"items": items, "questions": questions}


def _question(asked: Mapping[str, Any], title: str) -> dict[str, Any]:
    first = asked["question"].split()[0].lower()
    return {
        "text": joined(asked["question"]),
        "category": first if first in _ASKED else "other",
        "before": None,
        "evidence": sorted({f"{title}:{one['utterance_id']}" for one in asked["answers"]}),
    }


def meetings(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield a memory for every ten meetings. folder: a clone of QMSum."""
    files = [folder / f"data/ALL/jsonl/{part}.jsonl" for part in ("val", "test")]
    every = [read_own_json(line) for file in files for line in file.read_text().splitlines()]
    for first in range(0, len(every), MEETINGS):
        memory: dict[str, Any] = {"items": [], "questions": []}
        for number, meeting in enumerate(every[first : first + MEETINGS], first):
            turns, day = meeting["meeting_transcripts"], f"{_BEGINNING + timedelta(weeks=number)}"
            for place, one in enumerate(turns):
                turn = {"id": f"{number}:{place}", "speaker": one["speaker"], "text": one["content"]}
                memory["items"].append(_item(turn, f"meeting {number}", day))
            memory["questions"] += filter(
                None, (_of_meeting(asked, turns, number) for asked in meeting["specific_query_list"])
            )
        yield memory


def _of_meeting(asked: Mapping[str, Any], turns: Sequence[Mapping[str, str]], number: int) -> dict[str, Any] | None:
    """Return a question about a meeting, None without a turn that says anything."""
    spans = [range(int(first), min(int(last) + 1, len(turns))) for first, last in asked["relevant_text_span"]]
    places = sorted({place for span in spans for place in span})
    telling = [place for place in places if len(turns[place]["content"].split()) >= SPEAKING]
    if not telling:
        return None
    text = joined(asked["query"])
    kind = "summary" if text.lower().startswith("summari") else "question"
    return {"text": text, "category": kind, "before": None, "evidence": [f"{number}:{place}" for place in telling]}


def joined(text: str) -> str:
    """Return a text whose words were taken apart as one writes it, without marks of noises."""
    text = _APART.sub(r"\1", _NOISE.sub("", text))
    for apart, word in _ONE_WORD.items():
        text = text.replace(apart, word)
    return " ".join(text.split())


def _item(turn: dict[str, str], session: str, day: str) -> dict[str, Any]:
    return {**turn, "text": joined(turn["text"]) or "-", "session": session, "at": day}


def main() -> None:
    """Write a file for each data set that is given."""
    parser = argparse.ArgumentParser(description="Write talk of several people in the form of benchmarks.recall.")
    parser.add_argument("--scenes", type=Path, help="a clone of FriendsQA")
    parser.add_argument("--meetings", type=Path, help="a clone of QMSum")
    parser.add_argument("into", type=Path, help="the folder to write to")
    options = parser.parse_args()
    if options.scenes:
        write(options.into / "scenes.jsonl.gz", scenes(options.scenes))
        write(options.into / "scenes-whole.jsonl.gz", map(whole, scenes(options.scenes)))
    if options.meetings:
        write(options.into / "meetings.jsonl.gz", meetings(options.meetings))


if __name__ == "__main__":
    main()
