"""The list of limits is complete: a new constant or a new row of the page without a case fails here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.markdown import page
from tests.limits.elsewhere import REASONS, ROWS, TESTS
from tests.limits.limit import value_of
from tests.limits.table import PURE, SERVED
from tools.paths import ROOT

_RETAIN = ROOT / "workers" / "retain"
_NOT_UPLOADED = ("cli", "testing", "host")
_LIMIT = re.compile(r"_?(MAX|MIN)_[A-Z0-9_]+|[A-Z][A-Z0-9_]*_LIMIT|END_OF_[A-Z]+")
_PLATFORM = re.compile(r"[A-Z][A-Z0-9_]*")
_SAME = {
    "retain.memory.records.listing.MAX_LIMIT": "retain.routing.queries.MAX_LIMIT",
    "retain.agent_memory.routes.MAX_INGEST_BYTES": "retain.admin.resources.ingest.MAX_INGEST_BYTES",
}
"""Limits that the route's own limit states again."""


def _constants() -> Iterator[str]:
    for path in sorted(_RETAIN.rglob("*.py")):
        place = path.relative_to(_RETAIN.parent).with_suffix("").parts
        if place[1] in _NOT_UPLOADED:
            continue
        pattern = _PLATFORM if place[1] == "limits" else _LIMIT
        for statement in ast.parse(path.read_text()).body:
            match statement:
                case ast.Assign(targets=[ast.Name(name)]) | ast.AnnAssign(target=ast.Name(name)):
                    dotted = ".".join([*(part for part in place if part != "__init__"), name])
                    if pattern.fullmatch(name) and isinstance(value_of(dotted), int | float):
                        yield dotted


_CONSTANTS = sorted(_constants())
_TRIED = {limit.constant for limit in (*PURE, *SERVED) if limit.constant is not None}


def test_every_constant_that_limits_something_has_a_case() -> None:
    listed = _TRIED | TESTS.keys() | REASONS.keys() | _SAME.keys()
    assert sorted(set(_CONSTANTS) - listed) == []


def test_a_limit_has_one_place_in_the_list() -> None:
    named = [*TESTS, *REASONS, *_SAME]
    assert sorted(set(named) & _TRIED) == []
    assert len(set(named)) == len(named)
    for constant in [*named, *_TRIED]:
        assert isinstance(value_of(constant), int | float)


@pytest.mark.parametrize("constant", _SAME)
def test_a_limit_that_is_stated_twice_is_one(constant: str) -> None:
    assert value_of(constant) == value_of(_SAME[constant])


@pytest.mark.parametrize("test", sorted(set(TESTS.values())))
def test_the_test_that_tries_a_limit_exists(test: str) -> None:
    file, _, name = test.partition("::")
    found = ast.walk(ast.parse(Path(ROOT, file).read_text()))
    assert name in {one.name for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_every_row_of_the_page_has_a_case() -> None:
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in page("docs/limits.md").text.splitlines()
        if line.startswith("| ") and not line.startswith("| limit")
    ]
    listed = _TRIED | TESTS.keys() | REASONS.keys()
    missing = [
        row[0]
        for row in rows
        if row[0] not in ROWS
        and not set(re.findall(r"`(retain(?:\.[a-z_]+)+\.[A-Z][A-Z0-9_]*)`", " ".join(row))) & listed
    ]
    assert missing == []
    assert sorted(set(ROWS) - {row[0] for row in rows}) == []
