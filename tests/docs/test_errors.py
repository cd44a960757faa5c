"""docs/errors.md lists the error codes that exist, each with the status of its answer."""

from __future__ import annotations

import re

from tests.docs.error_codes import error_codes
from tests.docs.markdown import page, spans
from tools.paths import ROOT


def _documented() -> list[tuple[str, set[int]]]:
    """Return the codes of the tables with their statuses, in order."""
    rows = [row for row in page("docs/errors.md").rows() if len(row) == 3]
    return [(code, set(map(int, re.findall(r"\d{3}", row[1])))) for row in rows for code in spans(row[0])]


def test_every_code_is_documented_once() -> None:
    documented = [code for code, _ in _documented()]
    assert error_codes().keys() - set(documented) == set()
    assert len(documented) == len(set(documented))


def test_every_documented_code_exists() -> None:
    assert {code for code, _ in _documented()} - error_codes().keys() == set()


def test_every_code_is_documented_with_its_statuses() -> None:
    known = error_codes()
    wrong = {
        code: (statuses, known[code]) for code, statuses in _documented() if code in known and statuses != known[code]
    }
    assert wrong == {}


def test_every_code_is_used() -> None:
    sources = [path.read_text() for path in (ROOT / "workers").rglob("*.py") if not path.name.endswith("codes.py")]
    assert {code for code in error_codes() if not any(f'"{code}"' in source for source in sources)} == set()


def test_every_code_is_snake_case() -> None:
    assert [code for code in error_codes() if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", code)] == []
