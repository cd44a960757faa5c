"""Query strings: page sizes, flags, and parameters that a route does not have."""

from __future__ import annotations

import pytest
from pydantic import Field

from retain.errors import InvalidInput
from retain.routing.queries import MAX_LIMIT, AgentType, Flag, PageQuery, QueryString, WholeNumber


class Wanted(PageQuery):
    """A page of something."""

    agent_type: AgentType | None = None
    all: Flag = False
    number: int = Field(default=0)
    since_ms: WholeNumber | None = None


WANTED = QueryString(Wanted)


@pytest.mark.parametrize(("text", "limit"), [(None, 50), ("1", 1), ("50", 50), (str(MAX_LIMIT), MAX_LIMIT)])
def test_a_page_has_1_to_200_entries(text: str | None, limit: int) -> None:
    assert WANTED.read({} if text is None else {"limit": text}).limit == limit


@pytest.mark.parametrize(
    "text",
    ["", "0", "201", "-1", "1.0", "ten", " 5", "5\n", "\u0665", "\u00b2", "9" * 5000],
    ids=["empty", "0", "201", "-1", "1.0", "ten", "space", "newline", "other digits", "superscript", "very long"],
)
def test_any_other_page_size_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"limit": text})
    assert raised.value.code == "invalid_limit"


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("false", False)])
def test_a_flag_is_true_or_false(text: str, flag: bool) -> None:
    assert WANTED.read({"all": text}).all is flag


@pytest.mark.parametrize("text", ["", "1", "0", "yes", "True", "TRUE", " true", "maybe"])
def test_any_other_flag_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"all": text})
    assert raised.value.code == "invalid_query"
    assert str(raised.value.details["problems"]).startswith("['all: ")


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 5", "5\n", "1_000", "1e3", "\u0665", "9" * 16])
def test_a_number_is_at_most_15_digits_alone(text: str) -> None:
    assert WANTED.read({"since_ms": "0"}).since_ms == 0
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"since_ms": text})
    assert raised.value.code == "invalid_query"


def test_a_field_with_a_grammar_is_refused_with_its_own_code() -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"agent_type": "*"})
    assert raised.value.code == "invalid_agent_type"


def test_what_the_model_refuses_names_the_place() -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"number": "ten"})
    assert raised.value.code == "invalid_query"
    assert str(raised.value.details["problems"]).startswith("['number: ")


def test_a_parameter_that_the_route_does_not_have_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"agent": "probe"})
    assert raised.value.code == "invalid_query"
    assert str(raised.value.details["problems"]).startswith("['agent: ")
