"""What callers pass, as the generated models want it, and what the generated functions return."""

from __future__ import annotations

from typing import Any, TypeVar

from retain_client.api.types import UNSET, Response, Unset
from retain_client.errors import NOT_A_PROBLEM, RetainError

Value = TypeVar("Value")


def or_unset(value: Value | None) -> Value | Unset:
    """Return the value, or what a generated function leaves out of a request."""
    return UNSET if value is None else value


def given(**fields: Any) -> dict[str, Any]:
    """Return the fields that have a value, for `from_dict` of a generated model."""
    return {name: value for name, value in fields.items() if value is not None}


def answered(response: Response[Any], kind: type[Value]) -> Value:
    """Return what a generated function read. Raises: RetainError (code `unexpected_answer`) for anything else."""
    if isinstance(response.parsed, kind):
        return response.parsed
    raise RetainError(
        f"the answer with status {int(response.status_code)} is not one of Retain's",
        code=NOT_A_PROBLEM,
        status=int(response.status_code),
        request_id=response.headers.get("x-request-id"),
    )
