"""The threat model names a test for each defence, and each of them exists."""

from __future__ import annotations

import re

from tests.docs.markdown import page
from tools.paths import ROOT

_TEXT = page("docs/threat-model.md").text
_NAMED = re.compile(r"`((?:test|check)_\w+)`")
_DEFINED = re.compile(r"^(?:async )?def ((?:test|check)_\w+)", re.MULTILINE)
_DEFENCES = (
    "Who gets in",
    "Across tenants and users",
    "Text that acts",
    "Servers of others",
    "Size and time",
    "At rest, and the record",
)


def _section(title: str) -> str:
    return _TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_test_that_the_threat_model_names_exists() -> None:
    defined = {name for path in (ROOT / "tests").rglob("*.py") for name in _DEFINED.findall(path.read_text())}
    named = set(_NAMED.findall(_TEXT))
    assert len(named) > 30
    assert named - defined == set()


def test_every_defence_has_a_test() -> None:
    for title in _DEFENCES:
        rows = [line for line in _section(title).splitlines() if line.startswith("|")][2:]
        assert rows, title
        assert [row for row in rows if not _NAMED.search(row)] == []


def test_the_threat_model_has_assets_actors_boundaries_and_what_is_not_defended() -> None:
    for title in ("Assets", "Actors", "Boundaries", "What is not defended"):
        assert _section(title).strip(), title
