"""The benchmark of talks reads its data set, and asks with the last words and what was said before them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.talks import measure, read


def written(folder: Path) -> Path:
    """Write two memories and a talk of each of two people, and one published ranking, as the data set has them."""
    remembered = {
        "1": ("2023-12-25", "Bart danced at the Christmas party and felt very happy."),
        "3": ("2023-03-07", "Bart won the first prize in the race and felt very happy."),
        "2": ("2023-05-01", "Lisa found a lost soccer ball on the playground."),
        "4": ("2023-06-01", "Lisa baked a chocolate cake with her father."),
    }
    talks = [talk("Bart", 1, "I shall dance at a party!", [1]), talk("Lisa", 2, "I lost my ball.", [2])]
    files: dict[str, list[Any]] = {
        "data/en/MADial-Bench-en-memory.json": [
            {key: {"time": at, "event": event}} for key, (at, event) in remembered.items()
        ],
        "data/en/MADial-Bench-en-dialogue.json": talks,
        "embeddings/en/bge_m3_top_20.json": [
            {"relevant-id": [1], "top-20-ids": [1, 3]},
            {"relevant-id": [2], "top-20-ids": [4]},
        ],
    }
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("\n".join(map(json.dumps, content)))
    return folder


def talk(name: str, person: int, words: str, fitting: list[int]) -> dict[str, Any]:
    """Return a talk whose last turn is to be found."""
    turns = ["<BOD>\n", f' <{name}>: "Hello!"\n', '<Assistant>: "How are you?"\n', f'<{name}>: "{words}"\n', "<EOD>\n"]
    return {"dialogue": turns, "test-turn": [4], "relevant-id": fitting, "user-id": person}


async def test_what_fits_the_last_words_of_each_person(tmp_path: Path) -> None:
    bart, lisa = read(written(tmp_path))
    assert [item["id"] for item in bart["items"]] == ["3", "1"], "in the order of their days"
    [question] = lisa["questions"]
    assert question == {
        "text": "I lost my ball.",
        "context": ["Lisa: Hello!", "Assistant: How are you?"],
        "evidence": ["2"],
    }
    measured = await measure(tmp_path)
    assert list(measured) == ["full text", "vectors", "rank fusion", "retain", "bge_m3_top_20"]
    assert measured["retain"] == [(1.0, 1.0, 1.0, 1.0)] * 2
    assert measured["bge_m3_top_20"] == [(1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 0.0)]
