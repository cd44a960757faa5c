"""docs/errors.md lists the error codes that exist, each with the status it is answered with."""

from __future__ import annotations

import re

import pytest

from retain import identifiers
from retain.errors import InvalidInput
from tests.docs.error_codes import error_codes
from tests.docs.markdown import page, spans


def _documented() -> list[tuple[str, set[int]]]:
    """Return the codes of the tables with their statuses, in order."""
    rows = [row for row in page("docs/errors.md").rows() if len(row) == 3]
    return [(code, set(map(int, re.findall(r"\d{3}", row[1])))) for row in rows for code in spans(row[0])]


def test_every_code_is_documented_once() -> None:
    documented = [code for code, _ in _documented()]
    assert {code: sorted(error_codes()[code].places) for code in error_codes().keys() - set(documented)} == {}
    assert len(documented) == len(set(documented))


def test_every_documented_code_exists() -> None:
    assert {code for code, _ in _documented()} - error_codes().keys() == set()


def test_every_code_is_documented_with_its_statuses() -> None:
    known = error_codes()
    wrong = {
        code: (statuses, known[code].statuses, sorted(known[code].places))
        for code, statuses in _documented()
        if code in known and statuses != known[code].statuses
    }
    assert wrong == {}


def test_every_code_is_snake_case() -> None:
    assert [code for code in error_codes() if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", code)] == []


@pytest.mark.parametrize(
    "check", [check for name, check in vars(identifiers).items() if name.startswith("check_")], ids=lambda c: c.__name__
)
def test_codes_that_are_put_together_are_found_as_well(check: type) -> None:
    with pytest.raises(InvalidInput) as refused:
        check("*")
    assert refused.value.code in error_codes()
    assert refused.value.code != InvalidInput.code
