r"""A chat model that follows a script: deterministic, offline, and deciding by what the tools really answered.

A script is plain data, checked by `schema` when it is staged. Its rules are tried in order, and the first that fits
gives the reply. Most rules need no pattern:

    name: concierge
    rules:
      - rule: keep a fact
        when: {says: 'remember:'}
        reply:
          calls: [{tool: store_memory, arguments: {content: '{rest}'}}]
      - rule: answer with what is known
        when: {tool: recall_memory}
        reply: {text: 'I know this: {result.memories.0.content}'}

`says` is a text that the last user message contains, ignoring case. `{user}` is that message, `{rest}` what follows
that text in it, `{result}` the last tool result, and `{result.memories.0.content}` what its JSON has at that path; a
rule whose reply names a path that is not in the result does not fit. Patterns find everything else:

    name: refund_decision
    rules:
      - rule: look the history up
        when:
          last: user
          find: {user: '(?P<email>[\w.+-]+@[\w-]+\.\w+)'}
        reply:
          calls: [{tool: recall_memory, arguments: {query: 'refund history for {email}', top_k: 5}}]
      - rule: many refunds already
        when:
          tool: recall_memory
          find: {user: '(?P<email>[\w.+-]+@[\w-]+\.\w+)'}
          count: {refunds: {place: result, pattern: 'approved for {email}', at_least: 3}}
        reply: {text: 'ESCALATE: {email} was refunded {refunds} times before.'}
      - rule: few refunds
        when: {tool: recall_memory}
        reply: {text: APPROVE}

Places to search: `user` is the last user message, `context` all system messages and remembered text, `result` the last
tool result, `results` every tool result since the last user message. Named groups and counts fill `{name}` in later
patterns (taken literally there), in the reply's text and in arguments. An argument that is just `{name:int}` or
`{name:number}` becomes a number. All other braces stay as they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NotRequired, TypedDict

from retain.errors import Misconfigured, UpstreamFailed
from retain.json_text import Json, read_json
from retain.models.chat import ChatMessage, ChatReply, ChatRequest, OnText, ToolCall, Usage
from retain.models.providers.files import shown

Place = Literal["user", "context", "result", "results"]

PLACEHOLDER = re.compile(r"\{([a-z_][a-z0-9_]*|result(?:\.\w+)+)(?::(int|number))?\}")
"""A name to fill in, with the type it is turned into."""

GIVEN = frozenset({"user", "rest", "result"})
"""Names that need no pattern: `rest` where the rule has `says`; a path begins with `result`."""

REMEMBERED = '<memory section="'
"""How a message begins that an agent remembers, and that nobody said."""

_CHARACTERS_A_TOKEN = 4

_WORD = re.compile(r"\s*\S+\s*\Z|\s*\S+|\s+\Z")
"""A word with the white space before it, and after it at the end of the text; together they are the text."""


class Count(TypedDict):
    """How often a pattern must be found in a place; `at_most: 0` requires its absence."""

    place: Place
    pattern: str
    at_least: NotRequired[int]
    at_most: NotRequired[int]


class When(TypedDict, total=False):
    """Conditions, all of which must be met.

    last: role of the last message. says: the last message is the user's, and contains this text, ignoring case. tool:
    the last message is a result of this tool. results: number of tool results since the last user message. find:
    patterns that must be found, by place. count: counted patterns, by the name under which the reply can use their
    number.
    """

    last: Literal["user", "tool"]
    says: str
    tool: str
    results: int
    find: dict[Place, str | list[str]]
    count: dict[str, Count]


class Call(TypedDict):
    """A tool call to make. Strings in the arguments are filled in."""

    tool: str
    arguments: dict[str, Json]


class Reply(TypedDict, total=False):
    """What to answer: text, tool calls, or both."""

    text: str
    calls: list[Call]


class ScriptRule(TypedDict):
    """One rule. rule: what it is for, in words."""

    rule: str
    when: When
    reply: Reply


class Script(TypedDict):
    """A whole script."""

    name: str
    rules: list[ScriptRule]


def _read(message: ChatMessage, request: ChatRequest) -> ChatMessage:
    """Return a message with its text files as text, and a line for each other file."""
    return replace(message, content=shown(message, request.contents)) if message.attachments else message


@dataclass(frozen=True, slots=True)
class Scene:
    """The part of a conversation that conditions see.

    last: role of the last message. tool: the tool whose result it is. turn: number of the next reply, from 1.
    """

    last: str
    tool: str | None
    results: int
    turn: int
    places: Mapping[Place, str]

    @classmethod
    def of(cls, messages: Iterable[ChatMessage]) -> Scene:
        """Read a conversation. The current request starts at its last user message."""
        called: dict[str, str] = {}
        user, last, tool, turn = "", "", None, 1
        context: list[str] = []
        results: list[str] = []
        for message in messages:
            last, tool = message.role, None
            if message.role == "system" or (message.role == "user" and message.content.startswith(REMEMBERED)):
                context.append(message.content)
            elif message.role == "user":
                user, results = message.content, []
            elif message.role == "assistant":
                turn += 1
                called.update((call.id, call.name) for call in message.tool_calls)
            else:
                results.append(message.content)
                tool = called.get(message.tool_call_id or "")
        places: dict[Place, str] = {
            "user": user,
            "context": "\n".join(context),
            "result": results[-1] if results else "",
            "results": "\n".join(results),
        }
        return cls(last, tool, len(results), turn, places)


class ScriptedChat:
    """Answers by a script. Implements the `ChatModel` port."""

    def __init__(self, script: Script) -> None:
        """Take a script that `schema.check_script` accepted."""
        self._script = script

    @property
    def name(self) -> str:
        """Return `scripted/` and the script's name."""
        return f"scripted/{self._script['name']}"

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the reply of the first rule that fits. It streams word by word, and ends at the request's output
        limit.

        Equal conversations get equal replies. Ids of tool calls are `call_<turn>_<n>`.

        Raises: UpstreamFailed (code `script_exhausted`) when no rule fits, `answer_cut` when calls are over the limit;
            Misconfigured (code `invalid_script`) when
            a found text cannot be turned into the number that an argument needs.
        """
        scene = Scene.of(_read(message, request) for message in request.messages)
        for rule in self._script["rules"]:
            found = fitting(rule, scene)
            if found is not None:
                reply = _limited(_reply(rule["reply"], found, scene.turn, request), request.max_output_tokens)
                if on_text is not None:
                    for piece in _WORD.findall(reply.content):
                        await on_text(piece)
                return reply
        raise UpstreamFailed(
            f"no rule of the script fits: the last message is of role '{scene.last}'",
            code="script_exhausted",
            script=self._script["name"],
            role=scene.last,
            tool=scene.tool,
        )


def fitting(rule: ScriptRule, scene: Scene) -> dict[str, str] | None:
    """Return the values that the rule's reply can use, or None if the rule does not fit."""
    found = match(rule["when"], scene)
    if found is None:
        return None
    user = scene.places["user"]
    found |= {"user": user, "result": scene.places["result"]}
    prefix = _required_text(rule["when"], user)
    if prefix is not None:
        found["rest"] = user[prefix.end() :].strip()
    for name, _ in PLACEHOLDER.findall(json.dumps(rule["reply"], ensure_ascii=False)):
        if name not in found and name.startswith("result."):
            text = _at(name.split(".")[1:], scene.places["result"])
            if text is None:
                return None
            found[name] = text
    return found


def _required_text(when: When, user: str) -> re.Match[str] | None:
    return re.search(re.escape(when["says"]), user, re.IGNORECASE) if "says" in when else None


def _at(path: Sequence[str], result: str) -> str | None:
    """Return what a tool's result has at the path: a text unchanged, anything else as JSON. None if it has nothing."""
    try:
        value = read_json(result)
        for part in path:
            if isinstance(value, Mapping):
                value = value[part]
            elif isinstance(value, list):
                value = value[int(part)]
            else:
                return None
    except (ValueError, KeyError, IndexError):
        return None
    return value if isinstance(value, str) else json.dumps(value)


def match(when: When, scene: Scene) -> dict[str, str] | None:
    """Return the named groups and counts that the conditions found, or None unless all conditions are met."""
    wanted = (("last", scene.last), ("tool", scene.tool), ("results", scene.results))
    if any(when.get(name, actual) != actual for name, actual in wanted):
        return None
    if "says" in when and (scene.last != "user" or _required_text(when, scene.places["user"]) is None):
        return None
    found: dict[str, str] = {}
    for place, patterns in when.get("find", {}).items():
        for pattern in [patterns] if isinstance(patterns, str) else patterns:
            hit = re.search(fill(pattern, found, re.escape), scene.places[place])
            if hit is None:
                return None
            found.update((name, text or "") for name, text in hit.groupdict().items())
    for name, count in when.get("count", {}).items():
        hits = sum(1 for _ in re.finditer(fill(count["pattern"], found, re.escape), scene.places[count["place"]]))
        if hits < count.get("at_least", 0) or hits > count.get("at_most", hits):
            return None
        found[name] = str(hits)
    return found


def fill(text: str, found: Mapping[str, str], quote: Callable[[str], str] = str) -> str:
    """Replace each `{name}` by the value found for the name, quoted.

    Raises: Misconfigured (code `invalid_script`) for a name without a value.
    """

    def replace(place: re.Match[str]) -> str:
        if place[1] not in found:
            raise Misconfigured(f"the script uses {{{place[1]}}}, which no pattern defines", code="invalid_script")
        return quote(found[place[1]])

    return PLACEHOLDER.sub(replace, text)


def _fill_value(value: Any, found: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _fill_value(item, found) for key, item in value.items()}
    if isinstance(value, list):
        return [_fill_value(item, found) for item in value]
    if not isinstance(value, str):
        return value
    text = fill(value, found)
    whole = PLACEHOLDER.fullmatch(value)
    if whole is None or whole[2] is None:
        return text
    try:
        return int(text) if whole[2] == "int" else float(text)
    except ValueError as error:
        raise Misconfigured(f"the script's {value} is not a number", code="invalid_script") from error


def _reply(reply: Reply, found: Mapping[str, str], turn: int, request: ChatRequest) -> ChatReply:
    content = fill(reply.get("text", ""), found)
    calls = tuple(
        ToolCall(f"call_{turn}_{number}", call["tool"], _fill_value(call["arguments"], found))
        for number, call in enumerate(reply.get("calls", []), start=1)
    )
    answer = ChatMessage("assistant", content, calls)
    return ChatReply(content, calls, Usage(_estimated_tokens(request.messages), _estimated_tokens([answer])))


def _limited(reply: ChatReply, max_output_tokens: int) -> ChatReply:
    if reply.usage.output_tokens <= max_output_tokens:
        return reply
    if reply.tool_calls:
        raise UpstreamFailed("the answer reached its token limit before it was complete", code="answer_cut")
    content = reply.content[: max_output_tokens * _CHARACTERS_A_TOKEN]
    return ChatReply(content, (), Usage(reply.usage.input_tokens, max_output_tokens), "length")


def _estimated_tokens(messages: Iterable[ChatMessage]) -> int:
    """Estimate tokens as a quarter of the characters, rounded up: a rule of thumb for English.

    Source: https://help.openai.com/en/articles/4936856-what-are-tokens-and-how-to-count-them
    """
    characters = sum(
        len(message.content) + sum(len(call.name) + len(json.dumps(call.arguments)) for call in message.tool_calls)
        for message in messages
    )
    return -(-characters // _CHARACTERS_A_TOKEN)
