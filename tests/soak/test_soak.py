"""A soak runs the marked machines, counts their steps, and reports what failed with its seed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.soak.__main__ import ROOT
from tests.soak.report import Finding, Soak

MACHINES = """
import pytest
from hypothesis.stateful import invariant, rule
from tests.support.machines import CountedMachine, bounded


class Sound(CountedMachine):
    @rule()
    def walk(self):
        pass


class Broken(Sound):
    @rule()
    def fall(self):
        assert not "standing"


TestSound = pytest.mark.soak(Sound.TestCase)
TestSound.settings = bounded(examples=2, steps=3)
TestBroken = pytest.mark.soak(Broken.TestCase)
TestBroken.settings = bounded(examples=2, steps=3)


def test_that_is_not_marked():
    assert not "run"
"""


def test_a_soak_counts_steps_and_reports_what_failed(tmp_path: Path) -> None:
    machines, report = tmp_path / "test_machines.py", tmp_path / "report.md"
    machines.write_text(MACHINES, encoding="utf-8")
    command = [sys.executable, "-m", "tests.soak", "--minutes", "0", "--seed", "7", "--report", str(report)]
    done = subprocess.run([*command, str(machines)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    page = report.read_text(encoding="utf-8")
    assert "1 round(s)" in page
    assert "seeds 7 to 7; 1 tests passed, 1 findings" in page
    steps = {
        cells[1].strip(): int(cells[2])
        for line in page.splitlines()
        if len(cells := line.split("|")) == 4 and cells[2].strip().isdigit()
    }
    assert steps["Sound"] >= 1000, "the profile's examples of the profile's steps, not those of the ordinary suite"
    assert "fall" in page
    assert "not_marked" not in page


def test_a_round_in_which_tests_could_not_be_collected_is_an_error_and_not_a_success(tmp_path: Path) -> None:
    (tmp_path / "test_broken.py").write_text("import nothing_of_this_name", encoding="utf-8")
    command = [sys.executable, "-m", "tests.soak", "--minutes", "0", "--seed", "7", "--report", str(tmp_path / "r.md")]
    done = subprocess.run([*command, str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pytest ran nothing" in done.stderr


def test_a_failure_that_comes_again_is_one_finding() -> None:
    soak = Soak(first_seed=3)
    one = Finding("tests/a.py::TestA", 3, "E   AssertionError: left")
    assert soak.take(0, {"A": 5}, [one]) == [one]
    assert soak.take(0, {"A": 7}, [Finding("tests/a.py::TestA", 4, "E   AssertionError: left")]) == []
    other = Finding("tests/a.py::TestA", 5, "E   AssertionError: right")
    assert soak.take(0, {"A": 1}, [other]) == [other]
    assert soak.steps["A"] == 13
    assert "seed 3, 2 times: AssertionError: left" in soak.page()
