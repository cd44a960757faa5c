"""The page about the platform's limits names constants and codes as the code has them."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from retain.limits import deadlines, pages, rates, room, storage, vector_filter, vectorize
from tests.docs.error_codes import error_codes
from tests.docs.markdown import page

_PAGE = page("docs/limits.md")
_NAMED = re.findall(r"`(retain(?:\.[a-z_]+)+)\.([A-Z][A-Z0-9_]*)`(?: \(([\d,]+)[,)])?", _PAGE.text)
_ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in _PAGE.text.splitlines()
    if line.startswith("| ") and not line.startswith("| limit")
]


@pytest.mark.parametrize(("module", "name", "value"), _NAMED, ids=[".".join(named[:2]) for named in _NAMED])
def test_a_named_constant_has_the_documented_value(module: str, name: str, value: str) -> None:
    assert value, "the page gives no value"
    assert getattr(import_module(module), name) == int(value.rstrip(",").replace(",", ""))


def test_every_limit_that_is_checked_is_on_the_page() -> None:
    checked = {
        f"{module.__name__}.{name}"
        for module in (storage, vectorize, vector_filter, deadlines, rates, room, pages)
        for name, value in vars(module).items()
        if name.isupper() and isinstance(value, int) and not name.startswith("_")
    }
    inner = (
        "vectorize.GRACE_MS",
        "vectorize.LAG_MS",
        "room.MISSED_MS",
        "room.REMEMBERED",
    )  # of no account to who reads the page
    own = {f"retain.limits.{name}" for name in inner}
    assert checked - own == {f"{module}.{name}" for module, name, _ in _NAMED if module.startswith("retain.limits.")}


@pytest.mark.parametrize("row", _ROWS, ids=[row[0][:40] for row in _ROWS])
def test_what_a_caller_sees_is_a_code_that_exists(row: list[str]) -> None:
    assert len(row) == 4
    assert set(re.findall(r"`([a-z_]+)`", row[2])) <= error_codes().keys()


def test_the_page_has_a_source_for_each_service() -> None:
    sections = {section.splitlines()[0]: section for section in _PAGE.text.split("\n## ")}
    for service in ("D1", "Durable Objects", "Vectorize", "KV and R2", "Workers"):
        assert "https://developers.cloudflare.com/" in sections[service]
