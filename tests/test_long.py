"""The list of tests that take long has tests alone, and is written from the durations of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import long
from tests.long import ids_in, long_tests, main
from tools.paths import ROOT

_REPORT = """
<testsuites><testsuite>
  <testcase classname="tests.test_long" name="test_short" time="0.1"/>
  <testcase classname="tests.test_long" name="test_slow[a.b - 1]" time="2.5"/>
  <testcase classname="tests.lifecycle.records.test_records.TestRecords" name="runTest" time="60"/>
</testsuite></testsuites>
"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """A report of three tests, of which two took long."""
    path = tmp_path / "report.xml"
    path.write_text(_REPORT)
    return path


def test_what_took_long_is_found_by_the_id_that_pytest_gives_it(report: Path) -> None:
    machine = "tests/lifecycle/records/test_records.py::TestRecords::runTest"
    assert list(ids_in(report)) == ["tests/test_long.py::test_slow[a.b - 1]", machine]
    assert machine in long_tests()


def test_the_list_is_written_from_a_report(report: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(long, "LISTED", tmp_path / "long.txt")
    assert main([str(report)]) == 0
    assert long_tests() == set(ids_in(report))


def test_every_listed_test_exists() -> None:
    for one in long_tests():
        file, *inside = one.partition("[")[0].split("::")
        assert [name for name in inside if name not in (ROOT / file).read_text() and name != "runTest"] == [], one


def test_make_test_leaves_them_out_unless_it_is_asked_for_them() -> None:
    [recipe] = [line for line in (ROOT / "Makefile").read_text().splitlines() if "$(if $(LONG)$(CI),," in line]
    assert '-m "not long"' in recipe
    assert "CI=true" in (ROOT / ".ci/run").read_text()
