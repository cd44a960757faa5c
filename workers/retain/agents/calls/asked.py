"""What a request over HTTP asks of an agent, whatever its form: checked, and given to the instance that it means."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

from retain.agents.calls.asked_files import AskedFile
from retain.agents.calls.run_request import PriorMessage, RunInput, RunRequest
from retain.agents.calls.user import User
from retain.application_keys.tokens import BoundUser
from retain.dataclass_models import with_fields_of
from retain.errors import Forbidden, InvalidInput, LimitExceeded
from retain.errors.codes import Code
from retain.http import Request
from retain.identifiers import check_instance_id, new_id
from retain.json_schema import compile_object_schema
from retain.json_text import JsonObject
from retain.memory.records.limits import json_bytes
from retain.roles.principals import person_named
from retain.routing.bodies import BodyModel

MAX_INPUT_BYTES = 256 * 1024
"""Largest input of a run, in bytes of UTF-8: of an object, of its compact JSON."""
MAX_METADATA_BYTES = 10 * 1024
"""Largest metadata of a run, in bytes of compact JSON in UTF-8."""
MAX_SCHEMA_BYTES = 16 * 1024
"""Largest output schema of a run, likewise."""
REFUSALS: tuple[Code, ...] = (
    "unknown_agent",
    "agent_deleted",
    "agent_unreadable",
    "invalid_instance_id",
    "invalid_user",
    "wrong_user",
    "idempotency_key_reused",
    "instance_busy",
    "queue_full",
    "input_too_large",
    "metadata_too_large",
    "schema_too_large",
    "invalid_schema",
    "episode_limit",
    "run_quota",
    "token_quota",
    "unknown_task_type",
    "no_such_tool",
)
"""Why a run does not begin, whatever the form of the request."""
FILE_REFUSALS: tuple[Code, ...] = (
    "attachment_too_large",
    "attachments_not_accepted",
    "empty_content",
    "invalid_attachment",
    "invalid_attachment_name",
    "media_type_mismatch",
    "no_such_attachment",
    "too_many_attachments",
    "too_many_uploads",
    "unsupported_media_type",
)
"""Why it does not begin because of the files that the request names or brings."""


@with_fields_of(User)
class UserBody(BodyModel):
    """The user for whom a run acts, as the application knows them."""

    def to_user(self) -> User:
        """Return the user. Raises: InvalidInput (code `invalid_user`)."""
        return User(**self.model_dump())


@dataclass(frozen=True, slots=True)
class AskedRun:
    """A run as it is asked for. instance_id: None for a new instance. key: the request's idempotency key.

    prior: what was said before, for a new instance only: one that is named has its own conversation. files: those that the
    input names or brings. prior_files: those of each message of `prior`; none for none at all.
    """

    input: RunInput
    metadata: JsonObject = field(default_factory=dict)
    instance_id: str | None = None
    key: str | None = None
    stream: bool = False
    user: User | None = None
    output_schema: JsonObject | None = None
    prior: Sequence[PriorMessage] = ()
    files: Sequence[AskedFile] = ()
    prior_files: Sequence[Sequence[AskedFile]] = ()

    def checked(self, http: Request) -> tuple[str, RunRequest]:
        """Return the instance's id, and what it is asked for the request's caller.

        Raises: LimitExceeded (code `input_too_large`, `metadata_too_large`, `schema_too_large`); InvalidInput (code
            `invalid_schema`, `invalid_instance_id`); Forbidden (code `token_not_allowed`).
        """
        if _bytes_of(self.input) > MAX_INPUT_BYTES:
            raise LimitExceeded("the run's input is too large", code="input_too_large", limit_bytes=MAX_INPUT_BYTES)
        if json_bytes(self.metadata) > MAX_METADATA_BYTES:
            raise LimitExceeded(
                "the run's metadata is too large", code="metadata_too_large", limit_bytes=MAX_METADATA_BYTES
            )
        _check_schema(self.output_schema)
        user = _user_of(http.bound, self.user)
        request = RunRequest(
            self.input,
            self.metadata,
            self.key,
            self.stream,
            user=user,
            by=principal_of(http),
            output_schema=self.output_schema,
            prior=tuple(self.prior),
        )
        return self._instance(http.bound, user), request

    def _instance(self, bound: BoundUser | None, user: User | None) -> str:
        instance_id = new_id() if self.instance_id is None else check_instance_id(self.instance_id)
        if self.key is not None and self.instance_id is None:
            # The instance remembers the key; the key also names the instance, so that a retry reaches the same one.
            instance_id = _instance_for(self.key if user is None else f"{user.id}:{self.key}")
        return instance_id if bound is None else bound.instance(instance_id)


def principal_of(http: Request) -> str:
    """Return the principal that sends a request."""
    return http.principal or person_named(http.caller or "unknown")


def _bytes_of(value: RunInput) -> int:
    return len(value.encode()) if isinstance(value, str) else json_bytes(value)


def _check_schema(schema: JsonObject | None) -> None:
    """Raises: LimitExceeded (code `schema_too_large`); InvalidInput (code `invalid_schema`)."""
    if schema is None:
        return
    if json_bytes(schema) > MAX_SCHEMA_BYTES:
        raise LimitExceeded("the output schema is too large", code="schema_too_large", limit_bytes=MAX_SCHEMA_BYTES)
    try:
        compile_object_schema(schema)
    except ValueError as error:
        raise InvalidInput(f"the output schema: {error}", code="invalid_schema") from error


def _user_of(bound: BoundUser | None, named: User | None) -> User | None:
    """Return for whom a run acts: a token's user, described by the body. Raises: Forbidden for somebody else."""
    if bound is None:
        return named
    if named is not None and named.id != bound.user_id:
        raise Forbidden("the token speaks for another user", code="token_not_allowed")
    return named or User(bound.user_id)


def _instance_for(idempotency_key: str) -> str:
    return f"key-{sha256(idempotency_key.encode()).hexdigest()[:40]}"
