"""What the platform's refusals of a statement mean."""

from __future__ import annotations

import pytest

from retain.errors import Conflict, Unavailable
from retain.limits.storage import statement_error


@pytest.mark.parametrize(
    ("text", "kind", "code"),
    [
        pytest.param(
            "D1_ERROR: UNIQUE constraint failed: t.a: SQLITE_CONSTRAINT", Conflict, "constraint", id="constraint"
        ),
        pytest.param("D1_ERROR: Exceeded maximum DB size.", Unavailable, "database_full", id="a full D1 database"),
        pytest.param("D1_ERROR: Exceeded maximum account storage.", Unavailable, "database_full", id="a full account"),
        pytest.param("database or disk is full: SQLITE_FULL", Unavailable, "database_full", id="a full object"),
        pytest.param("D1_ERROR: Network connection lost.", Unavailable, "d1_unavailable", id="anything else"),
    ],
)
def test_a_refusal_says_what_the_caller_can_do_and_quotes_nothing(text: str, kind: type, code: str) -> None:
    error = statement_error("D1", text, "d1_unavailable")
    assert isinstance(error, kind)
    assert error.code == code
    assert text not in error.message
