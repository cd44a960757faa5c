"""How an agent changes what is known: `learn_fact` stores a fact in parts, `forget_memory` deletes memories.

A newer fact of the same subject and predicate replaces the one before.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import get_args

from retain.agents.calls.user import User
from retain.agents.tools.built_in import CallContext, ToolResult, refuse_unknown, text_argument
from retain.errors import InvalidInput, NotFound
from retain.identifiers import check_id
from retain.ingest.extraction import predicate_of
from retain.json_text import Json, JsonObject
from retain.memory.facts import Fact, learn, user_subject
from retain.memory.records.record import Kind, RecordSource
from retain.memory.semantic import SemanticMemory
from retain.models.chat import ToolSpec

MAX_FORGOTTEN = 20
"""The most memories that one call of `forget_memory` deletes: as many as a recall answers."""
UNNAMED = "The user"
"""How a sentence names a user whose name the application did not give."""
_KINDS: tuple[Kind, ...] = get_args(Kind)
_RELATION = r"^[a-z][a-z0-9_]{0,63}$"
_PARTS = {
    "predicate": {
        "type": "string",
        "pattern": _RELATION,
        "description": "The relation alone: lives_in, works_at, likes, prefers_channel.",
    },
    "object": {"type": "string", "description": "Its value, in few words."},
    "one_value": {
        "type": "boolean",
        "description": "True if the relation has one value at a time, as lives_in: the new one replaces the old.",
    },
    "kind": {"type": "string", "enum": list(_KINDS), "description": "`fact` by default."},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1, "description": "How certain it is; 1 by default."},
    "importance": {"type": "number", "minimum": 0, "maximum": 1, "description": "How much it matters; 0.5 by default."},
}


class LearnFact:
    """`learn_fact`: store a fact in the run's memory, about its user or another subject. It takes no scope."""

    idempotent = True

    def __init__(self, memory: SemanticMemory, *, has_user: bool) -> None:
        """memory: the run's. has_user: whether it acts for a user: what facts are about that name no subject."""
        self._memory = memory
        self._has_user = has_user

    @property
    def spec(self) -> ToolSpec:
        """Name, description and arguments; `subject` is required when the run has no user."""
        default = " Leave it out for the user." if self._has_user else ""
        subject = {"type": "string", "description": f"What the fact is about, such as contact:c-100.{default}"}
        required = ["predicate", "object"] if self._has_user else ["subject", "predicate", "object"]
        return ToolSpec(
            "learn_fact",
            "Remember one fact in parts for later runs, such as where somebody lives or what they prefer.",
            {
                "type": "object",
                "properties": {"subject": subject, **_PARTS},
                "required": required,
                "additionalProperties": False,
            },
        )

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Return the record's id, and whether it is new, as `store_memory` does. Raises: InvalidInput."""
        refuse_unknown(arguments, {"subject", *_PARTS})
        source = RecordSource("agent", run_id=context.run_id, step=context.turn)
        return ToolResult(json.dumps((await learn(self._memory, _fact(arguments, context.user), source)).to_json()))


class ForgetMemory:
    """`forget_memory`: delete memories of the run's user, or of the agent when it has none. It takes no scope.

    What belongs to others who share it, as to the agent's house, stays.
    """

    idempotent = True
    spec = ToolSpec(
        "forget_memory",
        "Delete memories that are wrong, or that somebody asks you to forget, by the ids that recall_memory answers. "
        "Answers which are gone, and which are kept because they are shared with others.",
        {
            "type": "object",
            "properties": {
                "ids": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": MAX_FORGOTTEN},
            },
            "required": ["ids"],
            "additionalProperties": False,
        },
    )

    def __init__(self, memory: SemanticMemory) -> None:
        self._memory = memory

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Return the ids of what is not remembered now, `gone`, and of what the run may read and not delete, `kept`.

        Raises: InvalidInput.
        """
        refuse_unknown(arguments, {"ids"})
        ids = arguments.get("ids")
        if not isinstance(ids, Sequence) or isinstance(ids, str) or not 1 <= len(ids) <= MAX_FORGOTTEN:
            raise InvalidInput(f"ids is a list of 1 to {MAX_FORGOTTEN} ids", code="invalid_arguments")
        wanted = list(dict.fromkeys(check_id(one) for one in ids))
        source = RecordSource("agent", run_id=context.run_id, step=context.turn)
        deleted = set(await self._memory.delete_all(wanted, source))
        kept = [one for one in wanted if one not in deleted and await self._is_there(one)]
        gone = [one for one in wanted if one not in kept]
        return ToolResult(json.dumps({"gone": gone, "kept": kept}))

    async def _is_there(self, record_id: str) -> bool:
        try:
            await self._memory.page_of(record_id, limit=1)
        except NotFound:
            return False
        return True


def _fact(arguments: JsonObject, user: User | None) -> Fact:
    relation, value = text_argument(arguments, "predicate"), text_argument(arguments, "object").strip()
    if re.match(_RELATION, relation) is None or not value:
        raise InvalidInput("predicate is a name in snake case, and object not blank", code="invalid_arguments")
    one_value = arguments.get("one_value")
    if one_value is not None and not isinstance(one_value, bool):
        raise InvalidInput("one_value must be true or false", code="invalid_arguments")
    subject, called = _subject(arguments, user)
    return Fact(
        subject,
        predicate_of(relation, value, functional=one_value),
        value,
        confidence=_share(arguments, "confidence", 1.0),
        importance=_share(arguments, "importance", 0.5),
        kind=_kind(arguments.get("kind", "fact")),
        called=called,
    )


def _subject(arguments: JsonObject, user: User | None) -> tuple[str, str | None]:
    """Return the fact's subject, and how its sentence names it: None as itself."""
    if "subject" in arguments:
        named = text_argument(arguments, "subject").strip()
        if user is None or named.casefold() not in names_of(user):
            return named, None
    elif user is None:
        raise InvalidInput("the argument 'subject' is missing: the run has no user", code="invalid_arguments")
    return user_subject(user.id), user.name or UNNAMED


def _kind(value: Json) -> Kind:
    for kind in _KINDS:
        if value == kind:
            return kind
    raise InvalidInput(f"kind is one of {', '.join(_KINDS)}", code="invalid_arguments")


def _share(arguments: JsonObject, name: str, default: float) -> float:
    value = arguments.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise InvalidInput(f"{name} must be a number from 0 to 1", code="invalid_arguments")
    return float(value)


def names_of(user: User) -> frozenset[str]:
    """Return what a model may call the run's user as a subject, in small letters."""
    named = {"user", UNNAMED.casefold(), user.id.casefold(), user_subject(user.id).casefold()}
    return frozenset(named if user.name is None else {*named, user.name.strip().casefold()})
