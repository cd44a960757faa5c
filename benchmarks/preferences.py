"""Write public data sets of preferences in the form that `benchmarks.recall` measures.

Both stay outside the repository, and no part of recall was chosen on them but those that decision 7 names.

*PrefEval* (CC BY-NC 4.0, https://github.com/amazon-science/PrefEval): a preference and a question whose usual answer goes
against it, as each of 20 topics has up to 57. A user here has one preference of each topic, a conversation each, between
the 24 conversations about other things that the data set has. The evidence is the message that states it. Three files: it is
stated (`explicit`), shows in a choice (`choice`), or is mentioned among other things (`persona`: the message that has the
most words of it).

*VehicleMemBench* (Apache-2.0, https://github.com/isyuhaochen/VehicleMemBench): fifty cars whose three or four users talk,
some 2,400 turns each, and ten situations a car whose right setting rests on what was said. The evidence of a situation are
the turns, within twenty minutes of the time of each event that it rests on, with the most words of its description.

*CarMem* (no licence, https://github.com/johanneskirmayr/CarMem): a hundred people who each have ten short talks with the
voice of their car, each of which shows a preference, and ten later requests that the preference matters for. The evidence is
the turn of the driver with the most words of the preference. Two files: of turns, and of each talk as one text (`talks`).

    python -m benchmarks.preferences --prefeval PrefEval --cars VehicleMemBench --voices CarMem folder  # paths of clones
    make bench-recall DATA=folder
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.recall import write
from retain.json_text import read_own_json

FORMS = {
    "explicit": "explicit_preference",
    "choice": "implicit_preference/choice-based",
    "persona": "implicit_preference/persona-driven",
}
"""The files of PrefEval, by what they are called here."""
_ANSWER = "Thank you for telling me. I'll keep that in mind."
_FIRST_DAY = datetime(2025, 1, 1, 10, tzinfo=UTC)
_LEAST_TOPICS = 5
"""A user has a preference of at least so many topics."""
_NEAR = timedelta(minutes=20)
"""Turns within this time of each other are one conversation, and those of an event are within it of its time."""
_LEAST_WORDS = 3
"""An event has at least so many words of its turn."""
_EVENT = re.compile(r"\[(\w+ \d+, \d{4})\] At (\d+:\d+ [AP]M),?(.*)")
_LINE = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d)\] ([^:]+): (.*)")

Turns = Sequence[tuple[str, str]]
"""Who said what, in order."""


def prefeval(folder: Path, form: str) -> Iterator[dict[str, Any]]:
    """Yield a user's conversations and questions, of one of the `FORMS`."""
    data = folder / "benchmark_dataset"
    topics = {path.stem: read_own_json(path.read_text()) for path in sorted((data / FORMS[form]).glob("*.json"))}
    others = read_own_json((data / "filtered_inter_turns.json").read_text())
    for number in range(max(map(len, topics.values()))):
        own = {topic: each[number] for topic, each in topics.items() if len(each) > number}
        if len(own) < _LEAST_TOPICS:
            return
        yield _user(own, form, others)


def _user(own: Mapping[str, Mapping[str, Any]], form: str, others: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a user with a conversation about each topic's preference, and one of the others after each while there are."""
    items: list[dict[str, Any]] = []
    questions: list[dict[str, Any]] = []
    for number, (topic, case) in enumerate(own.items()):
        turns, stated = _stating(case, form)
        evidence = _add(items, f"{number}", 2 * number, turns)[stated]
        questions.append(
            {"text": case["question"], "category": topic.split("_")[0], "before": None, "evidence": [evidence]}
        )
        if number < len(others):
            other = [(turn["role"], turn["content"]) for turn in others[number]["conversation"]]
            _add(items, f"other {number}", 2 * number + 1, other)
    return {"items": items, "questions": questions}


def _add(items: list[dict[str, Any]], session: str, day: int, turns: Turns) -> list[str]:
    """Add a conversation on a day, and return the ids of its turns."""
    began = _FIRST_DAY + timedelta(days=day)
    ids = [f"{session}:{place}" for place in range(len(turns))]
    items += [
        {"id": own, "session": session, "at": _written(began + timedelta(seconds=place)), "speaker": who, "text": text}
        for place, (own, (who, text)) in enumerate(zip(ids, turns, strict=True))
        if text.strip()
    ]
    return ids


def _stating(case: Mapping[str, Any], form: str) -> tuple[Turns, int]:
    """Return a conversation, and which of its turns states the preference."""
    if form == "explicit":
        return [("user", case["preference"]), ("assistant", _ANSWER)], 0
    had = case["conversation"]
    if form == "choice":
        parts = ("query", "assistant_options", "user_selection", "assistant_acknowledgment")
        return [(("user", "assistant")[place % 2], had[part]) for place, part in enumerate(parts)], 2
    turns = [(who, had[turn].get(who, "")) for turn in sorted(had, key=int) for who in ("user", "assistant")]
    wanted = _words(case["preference"])
    return turns, max(range(0, len(turns), 2), key=lambda place: len(wanted & _words(turns[place][1])))


def cars(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield what was said in each car, and its situations."""
    for path in sorted((folder / "benchmark" / "history").glob("history_*.txt")):
        turns = [match.groups() for line in path.read_text().splitlines() if (match := _LINE.match(line))]
        times = [_time(at, "%Y-%m-%d %H:%M") for at, _, _ in turns]
        items: list[dict[str, Any]] = []
        session = 0
        for number, (_, speaker, text) in enumerate(turns):
            session += number > 0 and not timedelta() <= times[number] - times[number - 1] <= _NEAR
            items.append(
                {
                    "id": f"{number}",
                    "session": f"{session}",
                    "at": _written(times[number]),
                    "speaker": speaker,
                    "text": text,
                }
            )
        asked = folder / "benchmark" / "qa_data" / f"qa_{path.stem.split('_')[1]}.json"
        questions = []
        for case in read_own_json(asked.read_text())["related_to_vehicle_preference"]:
            found = {_turn_of(event, items, times) for event in case["gold_memory"].strip().splitlines()} - {None}
            if found:
                category = case["reasoning_type"]
                questions.append(
                    {"text": case["query"], "category": category, "before": None, "evidence": sorted(map(str, found))}
                )
        yield {"items": items, "questions": questions}


def voices(folder: Path, *, whole: bool) -> Iterator[dict[str, Any]]:
    """Yield what each person and their car said, and their later requests. whole: each talk is one item."""
    for line in (folder / "dataset" / "dataset" / "dataset.jsonl").read_text("utf-8").splitlines():
        items: list[dict[str, Any]] = []
        questions = []
        for number, talk in enumerate(read_own_json(line)["data"]):
            turns = [(who.lower(), text) for turn in talk["extraction_conversation"] for who, text in turn.items()]
            category, *_, preferred = talk["user_preference"].split("; ")
            wanted = _words(preferred)
            of_driver = [place for place, (who, _) in enumerate(turns) if who == "user"]
            stated = max(of_driver, key=lambda place: len(wanted & _words(turns[place][1])))
            if whole:
                turns, stated = [("?", "\n".join(f"{who}: {text}" for who, text in turns))], 0
            evidence = _add(items, f"{number}", 2 * number, turns)[stated]
            if whole or wanted & _words(turns[stated][1]):
                asked = talk["next_conversation_question"]
                questions.append({"text": asked, "category": category, "before": None, "evidence": [evidence]})
        if whole:
            items = [item | {"session": None, "speaker": None} for item in items]
        yield {"items": items, "questions": questions}


def _turn_of(event: str, items: Sequence[Mapping[str, Any]], times: Sequence[datetime]) -> str | None:
    """Return the id of the turn that has most words of an event's description, at its time; the first of several."""
    match = _EVENT.match(event)
    if match is None:
        return None
    day, hour, described = match.groups()
    at, wanted = _time(f"{day} {hour}", "%B %d, %Y %I:%M %p"), _words(described)
    near = [
        (len(wanted & _words(item["text"])), item["id"])
        for item, own in zip(items, times, strict=True)
        if abs(own - at) <= _NEAR and own.date() == at.date()
    ]
    most, found = max(near, key=lambda one: one[0], default=(0, None))
    return found if most >= _LEAST_WORDS else None


def _time(text: str, form: str) -> datetime:
    return datetime.strptime(text, form).replace(tzinfo=UTC)


def _written(at: datetime) -> str:
    return at.strftime("%Y-%m-%d %H:%M:%S")


def _words(text: str) -> set[str]:
    """Return the words of a text that have three letters or more."""
    return set(re.findall(r"[a-z0-9]{3,}", text.lower()))


def main() -> None:
    """Write the files of the data sets that are given."""
    parser = argparse.ArgumentParser(description="Write data sets of preferences in the form of benchmarks.recall.")
    parser.add_argument("--prefeval", type=Path, help="a clone of PrefEval")
    parser.add_argument("--cars", type=Path, help="a clone of VehicleMemBench")
    parser.add_argument("--voices", type=Path, help="a clone of CarMem")
    parser.add_argument("into", type=Path, help="the folder to write to")
    options = parser.parse_args()
    if options.prefeval:
        for form in FORMS:
            write(options.into / f"prefeval-{form}.jsonl.gz", prefeval(options.prefeval, form))
    if options.cars:
        write(options.into / "cars.jsonl.gz", cars(options.cars))
    if options.voices:
        write(options.into / "voices.jsonl.gz", voices(options.voices, whole=False))
        write(options.into / "voices-talks.jsonl.gz", voices(options.voices, whole=True))


if __name__ == "__main__":
    main()
