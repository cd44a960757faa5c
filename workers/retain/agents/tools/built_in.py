"""Tools: what an agent can do besides talking. Each is a spec for the model and a coroutine for the loop."""

from __future__ import annotations

import json
import logging
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from traceback import format_exception
from typing import Protocol

from retain.agents.calls.run_request import Budget, RunReference
from retain.agents.calls.tokens import DEFAULT_BYTES_PER_TOKEN
from retain.agents.calls.user import User
from retain.agents.definitions import MemoryConfig
from retain.agents.recollection import Recollection, query_of, recollected
from retain.agents.runs.events import ToolAnswered, ToolCalled
from retain.errors import Forbidden, InvalidInput, NoSuchTool, RetainError
from retain.json_text import Json, JsonObject
from retain.log import redact_failure
from retain.memory.recalled import store_unrecalled
from retain.memory.records.record import NewRecord, RecordSource
from retain.memory.semantic import SemanticMemory
from retain.memory.working import WorkingMemory
from retain.models.attached import Attached
from retain.models.chat import ToolSpec
from retain.models.unicode import valid_text

MAX_RESULT_BYTES = 32 * 1024
"""Longest answer of a tool that the model reads, in bytes."""
CUT = " [cut]"
"""What follows a text of which the rest is left out."""
MAX_TRACEBACK_CHARACTERS = 4_000
"""How much of a failing tool's traceback the timeline keeps."""

_REMEMBERED = "What to remember, as one self-contained statement: with names and dates, not with `she` and `tomorrow`."

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CallContext:
    """Which step of which run makes the call, and what the run may still spend.

    key: equal for every attempt of the same call; first_key: that of an attempt which another run made.
    conversation: the end of what the run's model read of its conversation. files: those whose content it reads.
    waited_for: the run for which an earlier attempt was suspended. user: for whom the run acts.
    """

    run_id: str
    turn: int
    index: int
    budget: Budget = field(default_factory=Budget)
    conversation: str = ""
    first_key: str | None = None
    files: Sequence[Attached] = ()
    waited_for: RunReference | None = None
    user: User | None = None

    @classmethod
    def of(cls, run_id: str, called: ToolCalled) -> CallContext:
        """Return the step that made a call."""
        return cls(run_id, called.turn, called.index)

    @property
    def key(self) -> str:
        """The idempotency key of the call."""
        return self.first_key or f"{self.run_id}.{self.turn}.{self.index}"


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a tool answered. The other fields are as in `ToolAnswered`."""

    content: str
    recalled: tuple[tuple[str, float], ...] = ()
    summary: str | None = None
    tokens: int = 0
    delegations: int = 0


class CallSuspended(Exception):
    """The call cannot end yet, because what it waits for may take days: repeat it later, with the same key.

    waiting_for: the run that the call waits for.
    """

    def __init__(self, waiting_for: RunReference) -> None:
        super().__init__("the call waits")
        self.waiting_for = waiting_for


class Tool(Protocol):
    """One tool of one instance, bound to its scope when it was made."""

    @property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments."""
        ...

    @property
    def idempotent(self) -> bool:
        """Whether calling it again with the same key and arguments changes nothing more."""
        ...

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Call the tool and return its answer. Raises: RetainError, which the model reads as data; CallSuspended."""
        ...


async def run_tool(tools: Mapping[str, Tool], name: str, arguments: JsonObject, context: CallContext) -> ToolAnswered:
    """Call a tool and return its answer as an event. An error becomes an answer that the model can act on.

    So does an error that no tool should raise: otherwise it would stop the run again at every resumption.
    Raises: CallSuspended.
    """
    try:
        tool = tools.get(name)
        if tool is None:
            raise NoSuchTool(f"this agent has no tool named {name}")
        result = await tool.call(arguments, context)
    except CallSuspended:
        raise
    except RetainError as error:
        return _refused(name, error, context)
    except Exception as error:  # noqa: BLE001 -- whatever a tool does, its run has to end
        _log.exception("a tool failed unexpectedly", extra={"run_id": context.run_id, "tool": name})
        refused = _refused(name, RetainError("the tool failed; it may or may not have taken effect"), context)
        return replace(refused, traceback=_traceback(error))
    return answered(name, result, context)


def answered(name: str, result: ToolResult, context: CallContext) -> ToolAnswered:
    """Return what a tool answered as an event, cut to what a model reads."""
    content = valid_text(result.content)
    if len(content.encode()) > MAX_RESULT_BYTES:
        content = content.encode()[:MAX_RESULT_BYTES].decode("utf-8", "ignore") + CUT
    return ToolAnswered(
        context.turn,
        context.index,
        name,
        content,
        recalled=result.recalled,
        summary=result.summary,
        tokens=result.tokens,
        delegations=result.delegations,
    )


def shortened(text: str, excess: int) -> str:
    """Return a text with a mark of a cut, and by at least so many characters shorter in JSON."""
    room = len(json.dumps(text)) - excess - len(CUT)
    fitting = bisect_right(range(len(text)), room, key=lambda length: len(json.dumps(text[:length])))
    return text[: max(0, fitting - 1)] + CUT


def _traceback(error: Exception) -> str:
    """Return the end of the error's traceback, which names the error, without secrets."""
    return valid_text(redact_failure("".join(format_exception(error))[-MAX_TRACEBACK_CHARACTERS:]))


def _refused(name: str, error: RetainError, context: CallContext) -> ToolAnswered:
    content = json.dumps({"error": {"code": error.code, "message": error.message}})
    if len(content) > MAX_RESULT_BYTES:
        message = shortened(error.message, len(content) - MAX_RESULT_BYTES)
        content = json.dumps({"error": {"code": error.code, "message": message}})
    return ToolAnswered(context.turn, context.index, name, content, failed=True)


def text_argument(arguments: JsonObject, name: str) -> str:
    """Return a required text argument. Raises: InvalidInput."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"the argument '{name}' must be a non-empty string", code="invalid_arguments")
    return value


def refuse_unknown(arguments: JsonObject, known: set[str]) -> None:
    """Refuse arguments that the tool does not have. Raises: InvalidInput."""
    unknown = sorted(set(arguments) - known)
    if unknown:
        raise InvalidInput(f"unknown arguments: {', '.join(unknown)}", code="invalid_arguments")


class RecallMemory:
    """`recall_memory`: search the agent's own semantic memory. Takes nothing that could name a scope.

    The definition's filter always applies, and its bounds; its floor applies unless the model gives another. The model may
    narrow the search by the names that the definition allows.
    """

    idempotent = True

    def __init__(self, memory: SemanticMemory, config: MemoryConfig | None = None) -> None:
        self._memory = memory
        self._config = config or MemoryConfig()

    @property
    def spec(self) -> ToolSpec:
        """Name, description and arguments; the description names the definition's floor."""
        floor = f"Leave out what is less relevant, from 0 to 1; {self._config.min_score:g} by default."
        names = self._config.filters
        narrowing: dict[str, Json] = {
            "type": "object",
            "description": "Only memories with these values, such as a value, a list "
            'as {"$in": [...]}, or a range as {"$gte": ..., "$lt": ...}.',
            "properties": {name: {} for name in names},
            "additionalProperties": False,
        }
        return ToolSpec(
            "recall_memory",
            "Search your long-term memory. Returns the most relevant memories with their scores, and when they were said or "
            "since when they are so.",
            {
                "type": "object",
                "properties": {
                    "query": {"type": "string", "description": "What to look for, in plain words."},
                    "top_k": {"type": "integer", "minimum": 1, "maximum": 20, "description": "How many; 5 by default."},
                    "min_score": {"type": "number", "minimum": 0, "maximum": 1, "description": floor},
                    **({"filter": narrowing} if names else {}),
                },
                "required": ["query"],
                "additionalProperties": False,
            },
        )

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Search as a part of the run's conversation, and return the found memories as JSON.

        A long one is shortened; `left_out` counts those with no room left. `degraded`: what the recall had to do without
        (`RecallResult`), if anything.
        """
        refuse_unknown(arguments, {"query", "top_k", "min_score", *(["filter"] if self._config.filters else [])})
        top_k, min_score = arguments.get("top_k", 5), arguments.get("min_score")
        if not isinstance(top_k, int) or isinstance(top_k, bool):
            raise InvalidInput("top_k must be an integer", code="invalid_arguments")
        if not 1 <= top_k <= 20:
            raise InvalidInput("top_k must be 1 to 20", code="invalid_top_k")
        if isinstance(min_score, bool) or not isinstance(min_score, float | int | None):
            raise InvalidInput("min_score must be a number", code="invalid_arguments")
        narrowed = arguments.get("filter", {})
        if not isinstance(narrowed, Mapping):
            raise InvalidInput("filter must be an object", code="invalid_arguments")
        query = text_argument(arguments, "query")
        spoken = context.conversation
        wanted = query_of(self._config, query, top_k=top_k, min_score=min_score, narrowed=narrowed, conversation=spoken)
        result = await self._memory.recall(wanted)
        hits = result.hits
        shown = recollected(hits, query, self._config, DEFAULT_BYTES_PER_TOKEN)
        answer: dict[str, Json] = {"memories": [_shown(one) for one in shown]}
        if len(shown) < len(hits):
            answer["left_out"] = len(hits) - len(shown)
        if result.degraded:
            answer["degraded"] = list(result.degraded)
        ids = [one.hit.record.id for one in shown]
        return ToolResult(
            json.dumps(answer, ensure_ascii=False),
            recalled=tuple((one.hit.record.id, one.hit.score) for one in shown),
            summary=f"{len(ids)} memories recalled: {', '.join(ids)}" if ids else "nothing",
        )


def _shown(one: Recollection) -> dict[str, Json]:
    hit = one.hit
    return {
        "id": hit.record.id,
        "score": round(hit.score, 4),
        "relevance": round(hit.relevance, 4),
        **one.known,
        "content": one.text,
        "metadata": hit.record.metadata,
        **({"shortened": True} if one.shortened else {}),
    }


class StoreMemory:
    """`store_memory`: remember something of the run's user, or for the agent when it has none, unless it was recalled.

    What the run can already recall is not stored again, wherever it came from: the answer names the existing memory,
    which stays unchanged. With `shared`, this applies to the house's memory instead: what only the agent remembers may be
    stored for the house.
    """

    idempotent = True

    def __init__(self, memory: SemanticMemory, house: SemanticMemory | None = None, *, in_house: bool = False) -> None:
        """memory: the run's. house: its house's, when the definition lets the agent share. in_house: whether it has one."""
        self._memory = memory
        self._house = house
        self._in_house = in_house or house is not None

    @property
    def spec(self) -> ToolSpec:
        """Name, description and arguments; `shared` is offered only to an agent that may share."""
        shared = {"type": "boolean", "description": "True for what every agent of your group should know."}
        return ToolSpec(
            "store_memory",
            "Remember something for later runs.",
            {
                "type": "object",
                "properties": {
                    "content": {"type": "string", "description": _REMEMBERED},
                    "metadata": {"type": "object", "description": "Anything worth keeping along with it."},
                    **({} if self._house is None else {"shared": shared}),
                },
                "required": ["content"],
                "additionalProperties": False,
            },
        )

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Return the memory's id, whether it is new, and if not, which fields were added or kept.

        Raises: InvalidInput; Forbidden (code `no_house`, `sharing_not_allowed`) for `shared` by an agent that may not.
        """
        refuse_unknown(arguments, {"content", "metadata", "shared"})
        memory = self._wanted(arguments.get("shared", False))
        metadata = arguments.get("metadata", {})
        if not isinstance(metadata, Mapping):
            raise InvalidInput("metadata must be an object", code="invalid_arguments")
        new = NewRecord(text_argument(arguments, "content"), metadata)
        source = RecordSource("agent", run_id=context.run_id, step=context.turn)
        return ToolResult(json.dumps((await store_unrecalled(memory, new, source)).to_json()))

    def _wanted(self, shared: object) -> SemanticMemory:
        """Return the memory to store into."""
        if not isinstance(shared, bool):
            raise InvalidInput("shared must be true or false", code="invalid_arguments")
        if not shared:
            return self._memory
        if self._house is not None:
            return self._house
        if not self._in_house:
            raise Forbidden("this agent belongs to no house to share with", code="no_house")
        raise Forbidden("this agent's definition does not let it share", code="sharing_not_allowed")


class GetWorkingMemory:
    """`get_working_memory`: read the instance's short-lived notes."""

    idempotent = True
    spec = ToolSpec(
        "get_working_memory",
        "Read a short-lived note of this conversation. Without a key, all of them.",
        {"type": "object", "properties": {"key": {"type": "string"}}, "additionalProperties": False},
    )

    def __init__(self, working: WorkingMemory) -> None:
        self._working = working

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:  # noqa: ARG002
        """Return the value, or all values by key, as JSON."""
        refuse_unknown(arguments, {"key"})
        value = self._working.get(text_argument(arguments, "key")) if arguments else self._working.all()
        return ToolResult(json.dumps(value, ensure_ascii=False))


class SetWorkingMemory:
    """`set_working_memory`: keep a short-lived note for an hour."""

    idempotent = True
    spec = ToolSpec(
        "set_working_memory",
        "Keep a short-lived note of this conversation for an hour.",
        {
            "type": "object",
            "properties": {"key": {"type": "string"}, "value": {}},
            "required": ["key", "value"],
            "additionalProperties": False,
        },
    )

    def __init__(self, working: WorkingMemory) -> None:
        self._working = working

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:  # noqa: ARG002
        """Return the key."""
        refuse_unknown(arguments, {"key", "value"})
        if "value" not in arguments:
            raise InvalidInput("the argument 'value' is missing", code="invalid_arguments")
        key = text_argument(arguments, "key")
        await self._working.set(key, arguments["value"])
        return ToolResult(json.dumps({"key": key}))
