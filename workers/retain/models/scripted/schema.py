"""The schema of scripts for the scripted chat model. Used when a script is staged, never by the running Worker."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from retain.errors import InvalidInput
from retain.identifiers import check_tool_name
from retain.models.scripted.chat import GIVEN, PLACEHOLDER, Place, Script

Name = Annotated[str, Field(pattern=r"^[a-z_][a-z0-9_]*$")]


def _tool_name(value: str) -> str:
    try:
        return check_tool_name(value)
    except InvalidInput as error:
        raise ValueError(error.message) from error


ToolName = Annotated[str, AfterValidator(_tool_name)]


class _ScriptPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class CountModel(_ScriptPart):
    """How often a pattern must be found in a place."""

    place: Place
    pattern: str
    at_least: int = Field(default=0, ge=0)
    at_most: int | None = Field(default=None, ge=0)

    @model_validator(mode="after")
    def _is_satisfiable(self) -> CountModel:
        if self.at_most is not None and self.at_most < self.at_least:
            raise ValueError("at_most is less than at_least")
        return self


class WhenModel(_ScriptPart):
    """Conditions, all of which must be met."""

    last: Literal["user", "tool"] | None = None
    says: str | None = Field(default=None, min_length=1)
    tool: ToolName | None = None
    results: int | None = Field(default=None, ge=0)
    find: dict[Place, str | list[str]] = {}
    count: dict[Name, CountModel] = {}

    @model_validator(mode="after")
    def _is_satisfiable(self) -> WhenModel:
        if self.tool is not None and (self.last == "user" or self.says is not None):
            raise ValueError("a result of a tool is never a user message")
        if self.says is not None and self.last == "tool":
            raise ValueError("says needs the user's message as the last one, and tool needs a tool's")
        return self


class CallModel(_ScriptPart):
    """A tool call to make."""

    tool: ToolName
    arguments: dict[str, JsonValue] = {}


class ReplyModel(_ScriptPart):
    """What to answer."""

    text: str = ""
    calls: list[CallModel] = []

    @model_validator(mode="after")
    def _says_something(self) -> ReplyModel:
        if not self.text and not self.calls:
            raise ValueError("a reply needs text, calls, or both")
        return self


class RuleModel(_ScriptPart):
    """One rule: its patterns compile, and its reply uses only names that its patterns define."""

    rule: str = Field(min_length=1)
    when: WhenModel
    reply: ReplyModel

    @model_validator(mode="after")
    def _names_are_defined(self) -> RuleModel:
        defined: set[str] = set()
        for patterns in self.when.find.values():
            for pattern in [patterns] if isinstance(patterns, str) else patterns:
                _define(defined, *_compiled(pattern, defined).groupindex)
        for name, count in self.when.count.items():
            _compiled(count.pattern, defined)
            _define(defined, name)
        for text in _strings([self.reply.text, [call.arguments for call in self.reply.calls]]):
            _require(defined | (GIVEN if self.when.says else GIVEN - {"rest"}), text)
        return self


class ScriptModel(_ScriptPart):
    """A whole script: every rule can be reached."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_-]{0,63}$")
    rules: list[RuleModel] = Field(min_length=1)

    @model_validator(mode="after")
    def _rules_are_reachable(self) -> ScriptModel:
        for earlier in self.rules[:-1]:
            if earlier.when == WhenModel():
                raise ValueError(f"the rule '{earlier.rule}' has no conditions, so the rules after it are never tried")
        names = [rule.rule for rule in self.rules]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two rules are called '{name}'")
        return self


def check_script(data: object) -> Script:
    """Return the script as plain data, without absent fields, ready to be stored as JSON.

    Raises: InvalidInput (code `invalid_script`); `problems` in its details lists every one with its path.
    """
    try:
        script = ScriptModel.model_validate(data)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, found['loc'])) or 'script'}: {found['msg']}" for found in error.errors()]
        raise InvalidInput(
            f"the script is not valid: {'; '.join(problems)}", code="invalid_script", problems=problems
        ) from error
    return cast(Script, script.model_dump(mode="json", exclude_none=True))


def _compiled(pattern: str, defined: set[str]) -> re.Pattern[str]:
    _require(defined, pattern)
    try:
        return re.compile(PLACEHOLDER.sub("x", pattern))
    except re.error as error:
        raise ValueError(f"the pattern {pattern!r} is not valid: {error}") from error


def _require(defined: set[str], text: str) -> None:
    for name, kind in PLACEHOLDER.findall(text):
        if name not in defined and name.partition(".")[0] not in defined & GIVEN:
            raise ValueError(f"{{{name}}} is used, and no pattern before it defines it")
        if kind and PLACEHOLDER.fullmatch(text) is None:
            raise ValueError(f"{{{name}:{kind}}} must be the whole argument")


def _define(defined: set[str], *names: str) -> None:
    for name in names:
        if name in GIVEN:
            raise ValueError(f"{name} is a reserved name")
        if name in defined:
            raise ValueError(f"{name} is defined twice")
        if PLACEHOLDER.fullmatch(f"{{{name}}}") is None:
            raise ValueError(f"the group {name!r} cannot be used as a name")
        defined.add(name)


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
