"""Paragraphs with questions are written as `benchmarks.recall` reads them, also asked in another language."""

import json
from pathlib import Path

from benchmarks.passages import memory

PARAGRAPHS = {"en": (("Nina lives in Ghent.", "Where does Nina live?"), ("Omar has a cat.", "What does Omar have?"))}
PARAGRAPHS["de"] = (("Nina wohnt in Gent.", "Wo wohnt Nina?"), ("Omar hat eine Katze.", "Was hat Omar?"))


def test_a_question_has_the_paragraph_that_answers_it_in_any_language(tmp_path: Path) -> None:
    for language, pairs in PARAGRAPHS.items():
        paragraphs = [{"context": text, "qas": [{"question": question}]} for text, question in pairs]
        (tmp_path / f"xquad.{language}.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    both = memory(tmp_path, "en", "de", every=1)
    assert [(item["id"], item["text"], item["session"]) for item in both["items"]] == [
        ("0:0", "Nina lives in Ghent.", None),
        ("0:1", "Omar has a cat.", None),
    ]
    assert both["questions"][1] == {"text": "Was hat Omar?", "category": "de", "before": None, "evidence": ["0:1"]}
    assert memory(tmp_path, "en", "en", every=2)["questions"] == [
        {"text": "What does Omar have?", "category": "en", "before": None, "evidence": ["0:1"]}
    ]
