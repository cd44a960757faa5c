"""Query strings: checked against a pydantic model."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from retain.errors import InvalidInput
from retain.identifiers import check_agent_type, check_id
from retain.routing.bodies import problems_of

MAX_LIMIT = 200
"""Most entries on one page."""
_LIMIT = re.compile(r"[1-9][0-9]{0,2}")
_WHOLE = re.compile(r"[0-9]{1,15}")


class QueryModel(BaseModel):
    """The base of all query strings: an unknown parameter is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Model = TypeVar("Model", bound=QueryModel)


@dataclass(frozen=True, slots=True)
class QueryString(Generic[Model]):
    """Reads a query string as a model."""

    model: type[Model]

    def read(self, query: Mapping[str, str]) -> Model:
        """Return the model. Raises: InvalidInput, with the code of the field or with `invalid_query`."""
        try:
            return self.model.model_validate(dict(query))
        except ValidationError as error:
            raise InvalidInput("the query does not fit", code="invalid_query", problems=problems_of(error)) from error


def page_limit(text: str) -> int:
    """Return the page size. Raises: InvalidInput (code `invalid_limit`)."""
    if _LIMIT.fullmatch(text) is None or int(text) > MAX_LIMIT:
        raise InvalidInput(f"limit must be 1 to {MAX_LIMIT}", code="invalid_limit")
    return int(text)


def _flag(text: object) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


def _whole_number(text: object) -> int:
    if not isinstance(text, str) or _WHOLE.fullmatch(text) is None:
        raise ValueError("must be a whole number of at most 15 digits")
    return int(text)


PageLimit = Annotated[int, BeforeValidator(page_limit), Field(ge=1, le=MAX_LIMIT, description="most entries to return")]
"""The size of a page, from the query's text."""
Flag = Annotated[bool, BeforeValidator(_flag)]
"""`true` or `false`: any other text is refused."""
WholeNumber = Annotated[int, BeforeValidator(_whole_number)]
"""A number of at most 15 digits, without sign."""
AgentType = Annotated[str, AfterValidator(check_agent_type)]
Cursor = Annotated[str | None, Field(description="`cursor` of the previous page")]


def naming(check: Callable[[str], str]) -> AfterValidator:
    """Return what refuses a cursor that names no entry. check: of names. Raises: InvalidInput (code `invalid_cursor`)."""

    def checked(cursor: str | None) -> str | None:
        try:
            return cursor if cursor is None else check(cursor)
        except InvalidInput as error:
            raise InvalidInput("the cursor is not valid", code="invalid_cursor") from error

    return AfterValidator(checked)


IdCursor = Annotated[Cursor, naming(check_id)]


class PageQuery(QueryModel):
    """A page of a list."""

    limit: PageLimit = 50
    cursor: Cursor = None


class IdPageQuery(PageQuery):
    """A page of a list whose entries have ids."""

    cursor: IdCursor = None


class AgentPageQuery(PageQuery):
    """A page of a list of agents."""

    cursor: Annotated[Cursor, naming(check_agent_type)] = None
