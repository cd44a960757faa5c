"""What callers pass, as the generated models want it, and what the generated functions return."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import quote

import httpx

from retain_client.api.errors import UnexpectedStatus
from retain_client.api.types import UNSET, Response, Unset
from retain_client.errors import INVALID_ID, RetainError, not_retains

Value = TypeVar("Value")


class Body(Protocol):
    """A generated model of a request's body."""

    @classmethod
    def from_dict(cls, src_dict: Mapping[str, Any], /) -> Self:
        """Return the model. A field that it does not have is dropped without a word."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that are sent."""


Sent = TypeVar("Sent", bound=Body)


def path_part(value: object) -> str:
    """Return an id as one part of a path. Raises: RetainError (code `invalid_id`) for one that leads to another path."""
    try:
        if isinstance(value, str) and value not in ("", ".", ".."):
            return quote(value, safe="")
    except UnicodeEncodeError:  # half of a surrogate pair
        pass
    raise RetainError(f"{value!r} is not an id that an address can name; nothing was sent", code=INVALID_ID)


def or_unset(value: Value | None) -> Value | Unset:
    """Return the value, or what a generated function leaves out of a request."""
    return UNSET if value is None else value


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value, for `from_dict` of a generated model."""
    return {name: value for name, value in fields.items() if value is not None}


def body_of(kind: type[Sent], fields: Mapping[str, Any]) -> Sent:
    """Return a request's body with these fields. Raises: TypeError naming a field that it does not have, or needs."""
    try:
        body = kind.from_dict(fields)
    except KeyError as missing:
        raise TypeError(f"{kind.__name__} needs {missing}") from None
    dropped = _dropped(fields, body.to_dict())
    if dropped is not None:
        raise TypeError(f"{kind.__name__} has no field {dropped}")
    return body


def _dropped(given_value: Any, sent: Any) -> str | None:
    """Return the path of the first field that is not sent, None if all are."""
    if isinstance(given_value, Mapping) and isinstance(sent, Mapping):
        pairs = given_value.items()
    elif isinstance(given_value, list) and isinstance(sent, list):
        pairs, sent = dict(enumerate(given_value)).items(), dict(enumerate(sent))
    else:
        return None
    for name, value in pairs:
        if name not in sent:
            return str(name)
        within = _dropped(value, sent[name])
        if within is not None:
            return f"{name}.{within}"
    return None


def json_object(text: str | bytes) -> dict[str, Any]:
    """Return the object that a text is in JSON. Raises: ValueError for another text."""
    found = json.loads(text)
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def next_cursor(lines: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the cursor that a page of an export ends with, None on the last page. Raises: ValueError when it is cut off."""
    if not lines or lines[-1].get("kind") != "page":
        raise ValueError("the page of the export is cut off")
    cursor: str | None = lines[-1]["cursor"]
    return cursor


@contextmanager
def fitting(response: httpx.Response | Response[Any]) -> Iterator[None]:
    """Read an answer within. Raises: RetainError (code `unexpected_answer`) when it does not fit the document."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError, UnexpectedStatus) as error:
        why = "it has another status" if isinstance(error, UnexpectedStatus) else f"{type(error).__name__}: {error}"
        raise not_retains(int(response.status_code), response.headers, why) from error


def reading(build: Callable[..., Value]) -> Callable[..., Value]:
    """Return a generated function that reads an answer as one that raises RetainError for what does not fit."""

    @wraps(build)
    def read(*, client: Any, response: httpx.Response) -> Value:
        with fitting(response):
            return build(client=client, response=response)

    return read


def answered(response: Response[Any], kind: type[Value]) -> Value:
    """Return what a generated function read. Raises: RetainError (code `unexpected_answer`) for anything else."""
    if isinstance(response.parsed, kind):
        return response.parsed
    raise not_retains(int(response.status_code), response.headers, "it has another status")
