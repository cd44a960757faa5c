"""Function tools: a typed Python function in `agents/tools/` becomes a tool of the agents that name it.

    from retain.agents.tools.functions import ToolContext, tool

    @tool(idempotent=True)
    async def order_total(order: str, currency: str = "EUR", *, context: ToolContext) -> dict[str, object]:
        \"\"\"Return what an order costs.

        order: the order's number, as AB-1003.
        currency: three letters.
        \"\"\"

The function's name, docstring and annotations are what the model reads. A parameter annotated `ToolContext` is filled
by the runtime and is not in the schema. The decorated function stays an ordinary one that tests can call.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property, partial
from typing import Any, TypeVar, get_type_hints, overload

import pydantic_core
from pydantic import BaseModel, ConfigDict, Field, PydanticUserError, ValidationError, create_model

from retain.agents.calls.user import User
from retain.agents.tools.blocking import blocking_requests
from retain.agents.tools.built_in import CallContext, ToolResult
from retain.agents.tools.guarded import guarded
from retain.errors import Forbidden, InvalidInput, Misconfigured, UpstreamFailed
from retain.identifiers import check_tool_name
from retain.json_text import JsonObject, read_json
from retain.memory.semantic import SemanticMemory
from retain.memory.working import WorkingMemory
from retain.models.chat import ToolSpec
from retain.ports import Fetch

_MARK = "__retain_tool__"
_PARAMETER = re.compile(r"\s*(\w+)\s*(?:\([^)]*\))?\s*:\s+(\S.*)")
_HEADING = re.compile(r"\s*(Args|Arguments|Parameters):\s*")
_KINDS = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class ToolContext:
    """What a function may use: only what belongs to the run that calls it.

    idempotency_key: equal for every attempt of the same call; pass it to whatever the function calls. user: for whom the
    run acts, None for nobody in particular. metadata: the run's. date: the present, aware, in the user's time zone, else
    in UTC. working: the instance's short-lived notes. fetch: an HTTP client.
    """

    tenant_id: str
    agent_type: str
    instance_id: str
    run_id: str
    turn: int
    idempotency_key: str
    user: User | None
    metadata: JsonObject
    date: datetime
    working: WorkingMemory
    fetch: Fetch
    _memory: Callable[[], SemanticMemory] | None = None

    @property
    def conversation(self) -> str:
        """The id of the conversation, which is the instance's."""
        return self.instance_id

    @property
    def memory(self) -> SemanticMemory:
        """The run's own long-term memory: its user's, or its agent's when it has none.

        Raises: Forbidden (code `memory_disabled`) when its definition enables none.
        """
        if self._memory is None:
            raise Forbidden("the agent's definition enables no long-term memory", code="memory_disabled")
        return self._memory()


@overload
def tool(function: Function) -> Function: ...


@overload
def tool(*, idempotent: bool = False, requires_approval: bool = False) -> Callable[[Function], Function]: ...


def tool(
    function: Function | None = None, *, idempotent: bool = False, requires_approval: bool = False
) -> Function | Callable[[Function], Function]:
    """Declare a function to be a tool.

    idempotent: a second call with the same idempotency key changes nothing more, so a call that a crash interrupted is
    repeated. requires_approval: a person approves each call before it is made.
    """

    def declare(declared: Function) -> Function:
        setattr(declared, _MARK, (idempotent, requires_approval))
        return declared

    return declare if function is None else declare(function)


def is_tool(value: object) -> bool:
    """Return whether the value is a function that was declared to be a tool."""
    return inspect.isfunction(value) and hasattr(value, _MARK)


class FunctionTool:
    """A declared function: what the model reads of it, and the way to call it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Raises: Misconfigured (code `invalid_function`) when it is not declared, or cannot be described."""
        if not is_tool(function):
            raise _invalid(getattr(function, "__name__", str(function)), "it is not declared with @tool")
        self._function = function
        self.idempotent, self.requires_approval = getattr(function, _MARK)

    @cached_property
    def spec(self) -> ToolSpec:
        """Name, description and JSON Schema of the arguments. Raises: Misconfigured (code `invalid_function`)."""
        name = check_tool_name(self._function.__name__)
        description, _ = self._documented
        if not description:
            raise _invalid(name, "it has no docstring")
        schema = self._arguments.model_json_schema()
        return ToolSpec(name, description, _without_titles(schema))

    async def call(self, arguments: JsonObject, context: Callable[[], ToolContext]) -> ToolResult:
        """Validate the arguments, call the function, and return its answer: text unchanged, anything else as JSON.

        Whatever the function does ends this call alone (`retain.agents.tools.guarded`).
        Raises: InvalidInput (code `invalid_arguments`, with `problems`); UpstreamFailed (code `invalid_result`) for an
            answer that is not JSON; what the function raises, as an Exception.
        """
        answer = await guarded(partial(self._answer, arguments, context))
        assert isinstance(answer, ToolResult)
        return answer

    async def _answer(self, arguments: JsonObject, context: Callable[[], ToolContext]) -> ToolResult:
        try:
            checked = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            problems = [f"{'.'.join(map(str, found['loc']))}: {found['msg']}" for found in error.errors()]
            raise InvalidInput(
                f"invalid arguments: {'; '.join(problems)}", code="invalid_arguments", problems=problems
            ) from error
        given = {name: getattr(checked, name) for name in self._parameters}
        if self._context_name is not None:
            given[self._context_name] = context()
        answer = self._function(**given)
        if inspect.isawaitable(answer):
            answer = await answer
        if isinstance(answer, ToolResult):
            return answer
        if isinstance(answer, str):
            return ToolResult(answer)
        try:
            text = pydantic_core.to_json(answer).decode()
            if "NaN" in text or "Infinity" in text:  # what JSON has no numbers for
                json.dumps(read_json(text), allow_nan=False)
            return ToolResult(text)
        except ValueError as error:
            raise UpstreamFailed("the tool's answer is not JSON", code="invalid_result") from error

    @cached_property
    def _hints(self) -> dict[str, Any]:
        try:
            return get_type_hints(self._function, include_extras=True)
        except NameError as error:
            raise _invalid(self._function.__name__, f"an annotation cannot be read: {error}") from error

    @cached_property
    def _context_name(self) -> str | None:
        names = [name for name, hint in self._hints.items() if hint is ToolContext and name != "return"]
        if len(names) > 1:
            raise _invalid(self._function.__name__, "it takes more than one context")
        return names[0] if names else None

    @cached_property
    def _parameters(self) -> dict[str, inspect.Parameter]:
        """The parameters that the model fills."""
        found = dict(inspect.signature(self._function).parameters)
        for name, parameter in found.items():
            if parameter.kind not in _KINDS or name not in self._hints or name.startswith(("_", "model_")):
                raise _invalid(
                    self._function.__name__,
                    f"the parameter {name} must be passable by keyword, have an annotation and not begin with _ or model_",
                )
        return {name: parameter for name, parameter in found.items() if name != self._context_name}

    @cached_property
    def _documented(self) -> tuple[str, dict[str, str]]:
        """The docstring without its parameter descriptions, and those descriptions by parameter."""
        prose: list[str] = []
        described: dict[str, str] = {}
        current: str | None = None
        for line in (inspect.getdoc(self._function) or "").splitlines():
            found = _PARAMETER.fullmatch(line)
            if found is not None and (found[1] in self._parameters or found[1] == self._context_name):
                current = found[1]
                described[current] = found[2].strip()
            elif current is not None and line.strip():
                described[current] += " " + line.strip()
            else:
                current = None
                if _HEADING.fullmatch(line) is None:
                    prose.append(line)
        return re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip(), described

    @cached_property
    def _arguments(self) -> type[BaseModel]:
        _, described = self._documented
        fields: dict[str, Any] = {}
        for name, parameter in self._parameters.items():
            default = ... if parameter.default is inspect.Parameter.empty else parameter.default
            fields[name] = (self._hints[name], Field(default, description=described.get(name)))
        try:
            model: type[BaseModel] = create_model(
                self._function.__name__, __config__=ConfigDict(extra="forbid"), **fields
            )
            model.model_json_schema()
        except PydanticUserError as error:
            raise _invalid(self._function.__name__, error.message) from error
        return model


@dataclass(frozen=True)
class BoundFunction:
    """A function tool of one instance. Implements `Tool`. client: sends what synchronous libraries ask for."""

    declared: FunctionTool
    context: Callable[[CallContext], ToolContext]
    client: Fetch

    @property
    def spec(self) -> ToolSpec:
        """What the model reads of it."""
        return self.declared.spec

    @property
    def idempotent(self) -> bool:
        """Whether the function was declared idempotent."""
        return bool(self.declared.idempotent)

    async def call(self, arguments: JsonObject, context: CallContext) -> ToolResult:
        """Call the function. Raises: as `FunctionTool.call`."""
        # A library that waits suspends its whole stack, of which the run's loop would be a part: it begins calls at once.
        await asyncio.sleep(0)
        with blocking_requests(self.client):
            return await self.declared.call(arguments, lambda: self.context(context))


def _without_titles(schema: Any) -> Any:
    """Return the schema without the titles that pydantic generates: they add nothing for the model."""
    if isinstance(schema, list):
        return [_without_titles(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: value for key, value in schema.items() if not (key == "title" and isinstance(value, str))}
    return {
        key: {name: _without_titles(inner) for name, inner in value.items()}
        if key in ("properties", "$defs")
        else value
        if key in ("default", "const", "enum", "examples")
        else _without_titles(value)
        for key, value in kept.items()
    }


def _invalid(name: str, why: str) -> Misconfigured:
    return Misconfigured(f"the function {name} cannot be a tool: {why}", code="invalid_function")
