"""Fault points fit the adapters that they are added to, and hold exactly the call that is armed."""

from __future__ import annotations

import ast
import re
import shutil
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kills.points import _WRAPPED, Points
from tests.kills.walk import Table
from tools.paths import ROOT

ADAPTERS = ROOT / "workers" / "adapters"


@pytest.fixture
def points() -> Iterator[Points]:
    made = Points()
    yield made
    made.close()


def _ask(points: Points, name: str) -> threading.Thread:
    asking = threading.Thread(
        target=lambda: urllib.request.urlopen(f"{points.origin}/{name}", timeout=10).read(), daemon=True
    )
    asking.start()
    return asking


def test_the_staged_adapters_have_points_and_the_product_has_none(points: Points, tmp_path: Path) -> None:
    shutil.copytree(ADAPTERS, tmp_path / "adapters")
    points.add_to(tmp_path)
    for file in (tmp_path / "adapters").glob("*.py"):
        ast.parse(file.read_text())
        assert ("fault_points" in file.read_text()) == (file.name in _WRAPPED)
    assert points.origin in (tmp_path / "adapters" / "fault_points.py").read_text()
    assert not [file for file in (ROOT / "workers").rglob("*.py") if "fault_points" in file.read_text()]


@pytest.mark.parametrize(("name", "wraps"), _WRAPPED.items(), ids=list(_WRAPPED))
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


def test_only_the_armed_point_is_held_and_only_at_its_time(points: Points) -> None:
    points.arm("d1.users:after", 2)
    for name in ("d1.users:before", "d1.users:after", "kv.put:after"):
        _ask(points, name).join(5)
    assert not points.met.is_set()
    held = _ask(points, "d1.users:after")
    assert points.met.wait(5)
    held.join(0.1)
    assert held.is_alive()
    points.arm()
    held.join(5)
    assert not held.is_alive()
    assert points.seen == {}, "what was met before the arming does not count"


def test_the_table_says_what_was_lost() -> None:
    table = Table(seed=3, faults=20, kills=4, points={"kv.put:after"}, seconds=61.5)
    assert str(table) == (
        "fault points: seed 3, 4 kills at 1 points, of 20 faults (0 not met), in 62 s; lost, doubled or stuck: 0"
    )
    table.wrong.append("run, killed at kv.put:after (1): memories is {} instead of {'a': 1}")
    assert str(table).endswith("lost, doubled or stuck: 1\n  " + table.wrong[0])
