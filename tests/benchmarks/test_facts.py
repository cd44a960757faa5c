"""The facts that the rules find in a file of conversations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.facts import main


def test_each_text_is_read_once_and_its_facts_come_with_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    turns = [[{"text": "I play the piano\nat home."}, {"text": "Hello."}], [{"text": "I play the piano\nat home."}]]
    (tmp_path / "all.json").write_text(json.dumps({"one": {"messages": turns}}), "utf-8")
    main([str(tmp_path / "all.json")])
    printed = capsys.readouterr()
    assert printed.out == "plays:piano\tX plays piano\tI play the piano at home.\n"
    assert printed.err == "2 messages, 1 facts: {'plays': 1}\n"
