"""The benchmarks of talk of several people and of functions read their data, and name the evidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.functions import memory
from benchmarks.groups import joined, meetings, scenes, whole


def test_a_season_is_a_memory_and_a_scene_a_conversation(tmp_path: Path) -> None:
    scene = {
        "utterances:": [
            {"uid": 0, "speakers": ["Ann Lee", "Bob"], "utterance": "We ca n't go ."},
            {"uid": 1, "speakers": ["Bob"], "utterance": "Why ?"},
        ],
        "qas": [
            {"question": "Why ca n't they go ?", "answers": [{"utterance_id": 1}, {"utterance_id": 1}]},
            {"question": "Bob asks what ?", "answers": [{"utterance_id": 0}, {"utterance_id": 1}]},
        ],
    }
    (tmp_path / "dat").mkdir()
    for part, title in (("dev", "s02_e01_c01"), ("tst", "s01_e01_c01")):
        text = json.dumps({"data": [{"title": title, "paragraphs": [scene]}]})
        (tmp_path / f"dat/friendsqa_{part}.json").write_text(text)
    first, second = scenes(tmp_path)
    assert [item["id"] for item in first["items"]] == ["s01_e01_c01:0", "s01_e01_c01:1"]
    assert (first["items"][0]["speaker"], first["items"][0]["text"]) == ("Ann Lee and Bob", "We can't go.")
    assert [(one["category"], one["evidence"]) for one in second["questions"]] == [
        ("why", ["s02_e01_c01:1"]),
        ("other", ["s02_e01_c01:0", "s02_e01_c01:1"]),
    ]
    one = whole(second)
    assert [(item["id"], item["text"]) for item in one["items"]] == [
        ("s02_e01_c01", "Ann Lee and Bob: We can't go.\nBob: Why?")
    ]
    assert [question["evidence"] for question in one["questions"]] == [["s02_e01_c01"]] * 2


def test_what_is_asked_of_a_meeting_has_the_turns_that_say_something_as_evidence(tmp_path: Path) -> None:
    long = "one two three four five six seven eight"
    asked: list[dict[str, Any]] = [
        {"query": "Summarize it .", "relevant_text_span": [["0", "2"], ["2", "9"]]},
        {"query": "What was it ?", "relevant_text_span": [["1", "1"]]},
    ]
    meeting = {
        "meeting_transcripts": [
            {"speaker": "A", "content": text} for text in (long, "Okay .", f"{{vocalsound}} {long}")
        ],
        "specific_query_list": asked,
    }
    (tmp_path / "data/ALL/jsonl").mkdir(parents=True)
    for part, count in (("val", 6), ("test", 5)):
        (tmp_path / f"data/ALL/jsonl/{part}.jsonl").write_text("\n".join([json.dumps(meeting)] * count))
    first, last = meetings(tmp_path)
    assert (len(first["items"]), len(last["items"])) == (30, 3)
    [question] = last["questions"]
    assert question == {"text": "Summarize it.", "category": "summary", "before": None, "evidence": ["10:0", "10:2"]}
    assert last["items"][2] == {"id": "10:2", "speaker": "A", "text": long, "session": "meeting 10", "at": "2024-03-11"}


def test_words_that_were_taken_apart_are_joined() -> None:
    assert joined("I 'm gon na  {disfmarker} say , you do n't !") == "I'm gonna say, you don't!"


def test_a_function_is_asked_for_by_the_documentation_that_it_lost(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    source = (
        'class A:\n    def f(self):\n        """Return the sum of all\n        numbers here.\n\n        More.\n        """\n'
        '        x = 1\n        return x\n\ndef g():\n    """Too short."""\n    a = 1\n    return a\n'
    )
    for name in ("one.py", "test/two.py"):
        (tmp_path / name).write_text(source)
    found = memory(tmp_path, 5)
    assert [item["text"] for item in found["items"]] == ["def f(self):\n    x = 1\n    return x"]
    assert [(one["text"], one["evidence"]) for one in found["questions"]] == [
        ("Return the sum of all numbers here.", ["0"])
    ]
