"""The data sets of preferences are written as `benchmarks.recall` reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.preferences import FORMS, cars, prefeval, voices
from benchmarks.recall import conversations, measure, write
from tests.support.instances import shipped_embedder

TOPICS = ("food", "hotels", "music", "pets", "sports_indoors")
PARTS = ("query", "assistant_options", "user_selection", "assistant_acknowledgment")
OTHERS = [{"conversation": [{"role": "user", "content": "Sort a list."}, {"role": "assistant", "content": "Sorted."}]}]


def case(topic: str) -> dict[str, Any]:
    """Return a preference of a topic in all three forms at once."""
    return {
        "preference": f"I never want loud {topic}.",
        "question": f"Which {topic} would you recommend?",
        "conversation": {
            "query": f"Is there any {topic} around?",
            "assistant_options": "A loud one and a calm one.",
            "user_selection": "The calm one.",
            "assistant_acknowledgment": "A good choice.",
            "0": {"user": "I read a book.", "assistant": "Which one?"},
            "1": {"user": f"One without loud {topic}, as always.", "assistant": "I see."},
        },
    }


def written_prefeval(folder: Path) -> Path:
    """Write one preference of each topic, and a second of the first one."""
    data = folder / "benchmark_dataset"
    for name in FORMS.values():
        (data / name).mkdir(parents=True)
        for topic in TOPICS:
            cases = [case(topic)] * (2 if topic == "food" else 1)
            if name != FORMS["explicit"]:
                parts = PARTS if name == FORMS["choice"] else ("0", "1")
                cases = [{**one, "conversation": {part: one["conversation"][part] for part in parts}} for one in cases]
            (data / name / f"{topic}.json").write_text(json.dumps(cases))
    (data / "filtered_inter_turns.json").write_text(json.dumps(OTHERS))
    return folder


@pytest.mark.parametrize(
    ("form", "stated"),
    [
        ("explicit", "I never want loud pets."),
        ("choice", "The calm one."),
        ("persona", "One without loud pets, as always."),
    ],
)
def test_a_user_has_a_preference_of_each_topic_and_other_conversations(tmp_path: Path, form: str, stated: str) -> None:
    [user] = prefeval(written_prefeval(tmp_path), form)
    text = {item["id"]: item["text"] for item in user["items"]}
    asked = {question["text"]: (question["category"], question["evidence"]) for question in user["questions"]}
    category, [evidence] = asked["Which pets would you recommend?"]
    assert (category, text[evidence]) == ("pets", stated)
    assert {question["category"] for question in user["questions"]} == {"food", "hotels", "music", "pets", "sports"}
    assert [text[one] for one in text if one.startswith("other")] == ["Sort a list.", "Sorted."]


CAR = """
[2025-03-10 08:00] Ann: It is a long way.
[2025-03-10 08:02] Bob: I love the panel in green.
[2025-03-10 09:00] Ann: The panel in green is too dark for me.
[2025-03-11 08:01] Bob: I love the panel in green.
"""
GOLD = """
[March 10, 2025] At 8:00 AM, Bob told Ann: 'I love the panel in green.'
[March 12, 2025] At 8:00 AM, Bob loved the panel in green again.
"""


async def test_the_evidence_of_an_event_is_the_turn_of_its_time_with_most_of_its_words(tmp_path: Path) -> None:
    cases = [
        {"gold_memory": gold, "query": "Bob looked at the green panel.", "reasoning_type": "state_shift"}
        for gold in (GOLD, GOLD, "[March 12, 2025] At 8:00 AM, nobody said it.")
    ]
    asked = json.dumps({"related_to_vehicle_preference": cases})
    for name, text in (("history/history_7.txt", CAR), ("qa_data/qa_7.json", asked)):
        path = tmp_path / "benchmark" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    [car] = cars(tmp_path)
    assert [item["session"] for item in car["items"]] == ["0", "0", "1", "2"]
    found = [(question["evidence"], question["category"]) for question in car["questions"]]
    assert found == [(["1"], "state_shift")] * 2
    into = tmp_path / "cars.jsonl.gz"
    write(into, cars(tmp_path))
    assert list(conversations(into)) == [car]
    measured = await measure(into, shipped_embedder())
    assert [scores[1] for scores in measured["retain", "all"]] == [1.0, 1.0]


TALKS = [
    {
        "user_preference": "Music; Genre; Jazz",
        "extraction_conversation": [{"USER": "Play something."}, {"ASSISTANT": "Jazz?"}, {"USER": "Jazz, as always."}],
        "next_conversation_question": "Put on some music.",
    },
    {
        "user_preference": "Climate; Fan; High",
        "extraction_conversation": [{"USER": "Make it colder."}],
        "next_conversation_question": "Set the fan.",
    },
]


@pytest.mark.parametrize("whole", [False, True])
def test_the_evidence_of_a_request_is_the_talk_that_shows_the_preference(tmp_path: Path, *, whole: bool) -> None:
    path = tmp_path / "dataset" / "dataset" / "dataset.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"data": TALKS}) + "\n")
    [person] = voices(tmp_path, whole=whole)
    text = {item["id"]: item["text"] for item in person["items"]}
    asked = {
        question["text"]: (question["category"], text[question["evidence"][0]]) for question in person["questions"]
    }
    if whole:
        assert asked == {
            "Put on some music.": ("Music", "user: Play something.\nassistant: Jazz?\nuser: Jazz, as always."),
            "Set the fan.": ("Climate", "user: Make it colder."),
        }
    else:
        assert asked == {"Put on some music.": ("Music", "Jazz, as always.")}
    assert {(item["session"] is None, item["speaker"] is None) for item in person["items"]} == {(whole, whole)}
