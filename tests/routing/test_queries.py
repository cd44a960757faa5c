"""Query strings: page sizes, flags, and parameters that a route does not have."""

from __future__ import annotations

import pytest
from pydantic import Field

from retain.errors import InvalidInput
from retain.routing.queries import MAX_LIMIT, AgentType, Flag, PageQuery, QueryModel, QueryString


class Wanted(PageQuery):
    """A page of something."""

    agent_type: AgentType | None = None
    all: Flag = False
    number: int = Field(default=0)


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


@pytest.mark.parametrize(("text", "flag"), [("true", True), ("false", False), ("1", False), ("", False)])
def test_a_flag_is_set_by_the_text_true_alone(text: str, flag: bool) -> None:
    assert WANTED.read({"all": text}).all is flag


def test_a_field_with_a_grammar_is_refused_with_its_own_code() -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"agent_type": "*"})
    assert raised.value.code == "invalid_agent_type"


def test_what_the_model_refuses_names_the_place() -> None:
    with pytest.raises(InvalidInput) as raised:
        WANTED.read({"number": "ten"})
    assert raised.value.code == "invalid_query"
    assert str(raised.value.details["problems"]).startswith("['number: ")


def test_parameters_that_the_route_does_not_have_are_ignored() -> None:
    assert WANTED.read({"unknown": "x"}) == Wanted()


def test_a_base_that_forbids_other_parameters_is_enough_to_refuse_them() -> None:
    class Strict(QueryModel, extra="forbid"):
        cursor: str | None = None

    with pytest.raises(InvalidInput) as raised:
        QueryString(Strict).read({"unknown": "x"})
    assert raised.value.code == "invalid_query"
