"""`make eval`: which file is meant, what is refused before anything starts, and what the exit status says."""

from __future__ import annotations

from pathlib import Path

import pytest

from retain.cli import evaluate as command
from retain.errors import Unavailable
from retain.evaluation.results import Outcome
from tests.evaluation.world import SHIPPED


def test_a_dataset_is_a_file_or_a_name(tmp_path: Path) -> None:
    own = tmp_path / "own.json"
    own.write_text('{"target": {"agent": "sdr"}}')
    assert command.load(command.dataset_file(str(own))) == {"target": {"agent": "sdr"}}
    assert [command.dataset_file(name).name for name in SHIPPED] == [f"{name}.yaml" for name in SHIPPED]


@pytest.mark.parametrize("text", ["[1", "[]", "a: .nan", "a: 2020-01-01", 'a: "\\ud800"'])
def test_what_is_not_a_dataset_exits_with_2(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(SystemExit) as ended:
        command.main([str(path)])
    assert ended.value.code == 2


def test_a_server_that_does_not_answer_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "set.yaml"
    path.write_text("target: {agent: sdr}\n")
    for address in ("http://127.0.0.1:1", "http://[bad", "nowhere"):
        with pytest.raises(Unavailable, match="the server did not answer"):
            command.main([str(path), "--base-url", address])


def test_an_unknown_name_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["nothing"])
    assert ended.value.code == 2
    assert "refund_decision" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("outcome", "below", "good"),
    [("passed", [], True), ("failed", [], True), ("failed", ["exact"], False), ("errored", [], False)],
)
def test_a_run_is_good_when_it_is_above_its_thresholds_and_everything_was_scored(
    outcome: Outcome, below: list[str], good: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    run: command.EvaluatedRun = {
        "run_id": "01",
        "dataset": "set",
        "version": "0" * 64,
        "state": "completed",
        "thresholds": {"exact": 0.5},
        "cursor": None,
        "results": [
            {
                "case_id": "a",
                "outcome": outcome,
                "scores": [{"name": "exact", "value": 0.0, "passed": False, "detail": "[odd] text"}],
                "error": {"code": "judge_off", "message": "no judge"} if outcome == "errored" else None,
            }
        ],
        "summary": {
            "averages": {"exact": 0.0},
            "below": below,
            "total": 1,
            "passed": int(outcome == "passed"),
            "failed": int(outcome == "failed"),
            "errored": int(outcome == "errored"),
        },
    }
    assert command.report(run) is good
    assert f"{outcome}" in capsys.readouterr().out
