"""Fault points fit the code that they are added to, hold exactly the work that is armed, and are all named."""

from __future__ import annotations

import ast
import re
import shutil
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from retain.agents.methods import METHODS
from retain.agents.runs.tables import STATEMENTS
from tests.kills.named import NOT_WALKED, POINTS, READS
from tests.kills.points import Points
from tests.kills.scenarios import SCENARIOS
from tests.kills.staged import WRAPPED, add_points
from tests.kills.table import Table
from tests.kills.walk import batches, every_point_first
from tools.paths import ROOT

ADAPTERS = ROOT / "workers" / "adapters"
_WRITTEN = re.compile(r"(?:INSERT(?: OR \w+)? INTO|UPDATE(?: OR \w+)?|DELETE FROM)\s+(\w+)")
_CREATED = re.compile(r"CREATE (?:VIRTUAL )?TABLE (?:IF NOT EXISTS )?(\w+)")
_WRITERS = re.compile(r"INSTEAD OF INSERT ON (\w+)")
"""Views through which triggers write."""


def written_tables() -> set[str]:
    """Return the tables of D1 that the product's statements write. What triggers write is in their transactions."""
    created = {name for file in (ROOT / "migrations").glob("*.sql") for name in _CREATED.findall(file.read_text())}
    files = [file for kind in ("*.py", "*.sql") for file in (ROOT / "workers" / "retain").rglob(kind)]
    return {name for file in files for name in _WRITTEN.findall(file.read_text())} & created


def outbox_points() -> set[str]:
    """Return the points of what instances owe. Where a transaction of an outbox begins depends on when it is emptied."""
    return {f"d1.{written[1]}" for sql in STATEMENTS.values() if (written := _WRITTEN.search(sql))}


@pytest.fixture
def points() -> Iterator[Points]:
    made = Points()
    yield made
    made.close()


def _ask(points: Points, name: str, work: str) -> threading.Thread:
    url = f"{points.origin}/{name}?work={work}&tables=users,world_history"
    asking = threading.Thread(target=lambda: urllib.request.urlopen(url, timeout=10).read(), daemon=True)
    asking.start()
    return asking


def test_the_staged_worker_has_points_and_the_product_has_none(points: Points, tmp_path: Path) -> None:
    shutil.copytree(ADAPTERS, tmp_path / "adapters")
    shutil.copy(ROOT / "workers" / "entry.py", tmp_path)
    add_points(tmp_path, points.origin)
    for file in (tmp_path / "adapters").glob("*.py"):
        ast.parse(file.read_text())
        assert ("fault_points" in file.read_text()) == (file.name in WRAPPED)
    assert points.origin in (tmp_path / "adapters" / "fault_points.py").read_text()
    ast.parse((tmp_path / "entry.py").read_text())
    assert not [file for file in (ROOT / "workers").rglob("*.py") if "fault_points" in file.read_text()]


@pytest.mark.parametrize(("name", "wraps"), WRAPPED.items(), ids=list(WRAPPED))
def test_what_is_wrapped_exists(name: str, wraps: str) -> None:
    tree = ast.parse((ADAPTERS / name).read_text())
    functions = {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    methods = {
        node.name: {one.name for one in node.body if isinstance(one, ast.AsyncFunctionDef)}
        for node in tree.body
        if isinstance(node, ast.ClassDef)
    }
    for owner, named in re.findall(r'around_methods\("\w+", (\w+), (.*)\)', wraps):
        assert set(re.findall(r'"(\w+)"', named)) <= methods[owner]
    assert set(re.findall(r"^(\w+) = around", wraps, re.MULTILINE)) <= functions


def test_what_is_not_walked_is_written_by_the_product_and_each_point_of_d1_is_a_table_or_a_writer() -> None:
    assert NOT_WALKED.keys() < written_tables()
    writers = {name for file in (ROOT / "migrations").glob("*.sql") for name in _WRITERS.findall(file.read_text())}
    assert {name.partition(".")[2] for name in POINTS if name.startswith("d1.")} <= written_tables() | writers


def test_each_method_of_an_instance_is_a_point_unless_it_only_reads() -> None:
    named = {name.partition(".")[2] for name in POINTS if name.startswith("instance.")}
    assert named == METHODS.keys() - READS
    assert named | READS == METHODS.keys()


def test_only_the_armed_work_is_held_and_only_at_its_point_and_time(points: Points) -> None:
    work, other = points.watch("acme", "d1.users:after", 2), points.watch("other")
    for name in ("d1.users:before", "d1.users:after", "kv.put:after"):
        _ask(points, name, "acme").join(5)
    _ask(points, "d1.users:after", "other").join(5)
    _ask(points, "d1.users:after", "nobody").join(5)
    assert not work.held.is_set()
    held = _ask(points, "d1.users:after", "acme")
    assert work.held.wait(5)
    held.join(0.1)
    assert held.is_alive()
    points.release()
    held.join(5)
    assert not held.is_alive()
    assert work.seen == {"d1.users:before": 1, "d1.users:after": 2, "kv.put:after": 1}
    assert (other.seen, other.tables) == ({"d1.users:after": 1}, {"users", "world_history"})
    assert points.watch("acme").seen == {}, "what was met before does not count"


def test_one_kill_ends_several_works_and_at_most_one_of_those_that_share_something() -> None:
    alone = [name for name, scenario in SCENARIOS.items() if scenario.shares == "schedule"]
    faults = [(name, "kv.put:after", time) for time in range(1, 4) for name in (*alone, "run", "store")]
    made = list(batches(faults, 4))
    assert Counter(fault for batch in made for fault in batch) == Counter(faults)
    assert all(len(batch) <= 4 and len([name for name, _, _ in batch if name in alone]) <= 1 for batch in made)
    assert len(made[0]) == 4
    assert len(alone) == 2


def test_a_walk_that_is_cut_short_has_been_at_as_many_points_as_it_could() -> None:
    faults = [("run", "a", 1), ("run", "a", 2), ("store", "a", 1), ("store", "b", 1), ("run", "c", 1), ("run", "c", 2)]
    ordered = every_point_first(faults)
    assert [point for _, point, _ in ordered] == ["a", "b", "c", "a", "c", "a"]
    assert Counter(ordered) == Counter(faults)


def test_the_table_counts_what_was_lost_and_doubled_at_each_point() -> None:
    table = Table(seed=3, faults=20, starts=2, seconds=61.5)
    fault = ("run", "kv.put:after", 1)
    expected = {"runs": Counter(["sdr completed"]), "records": Counter(["a", "b"])}
    table.row(fault).killed += 1
    table.compare(fault, expected, expected)
    assert table.wrong == []
    table.row(fault).killed += 1
    table.compare(fault, {**expected, "records": Counter(["a", "a", "a"])}, expected)
    table.stuck(("run", "kv.put:before", 1), AssertionError("503"))
    lines = str(table).splitlines()
    assert lines[2].split("|")[1:-1] == [
        f" {'`kv.put:after`':42} ",
        "      2 ",
        "    2 ",
        "       5 ",
        "    1 ",
        "       2 ",
        "     0 ",
    ]
    assert lines[-3:] == [
        "fault points: seed 3, 2 of 20 faults killed at 2 points (0 not met), 2 starts, 62 s;"
        " runs 2, records 5, lost 1, doubled 2, stuck 1",
        "  run, killed at kv.put:after (1): records: lost {'b': 1}, doubled {'a': 2}",
        "  run, killed at kv.put:before (1): 503",
    ]
