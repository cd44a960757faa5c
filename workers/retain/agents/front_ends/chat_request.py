"""The body of a chat completion as OpenAI's clients send it, and the run that it means.

Source: https://platform.openai.com/docs/api-reference/chat/create
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from retain.agents.calls.asked import AskedRun
from retain.agents.calls.asked_files import AskedFile
from retain.agents.calls.run_request import PriorMessage
from retain.agents.calls.user import User
from retain.agents.front_ends.messages import ReadMessage, earlier_messages, newest_files, newest_question
from retain.agents.front_ends.parts import ContentPart
from retain.application_keys.tokens import BoundUser
from retain.errors import InvalidInput
from retain.json_text import JsonObject
from retain.routing.bodies import BodyModel

INSTANCE = "instance_id"
"""The name in `metadata` under which a request names its instance, and with it the conversation that Retain keeps."""
OF_A_USER = "chat"
"""The instance of a user's token that names none."""
IGNORED = (
    "frequency_penalty",
    "logit_bias",
    "max_completion_tokens",
    "max_tokens",
    "parallel_tool_calls",
    "presence_penalty",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning_effort",
    "safety_identifier",
    "seed",
    "service_tier",
    "stop",
    "store",
    "temperature",
    "top_p",
    "verbosity",
)
"""Parameters without effect: they are for the agent's definition to say, or mean nothing here."""
_TOOLS = ("tools", "functions", "tool_choice", "function_call")
_REFUSED = (
    *_TOOLS,
    "audio",
    "modalities",
    "moderation",
    "prediction",
    "web_search_options",
    "logprobs",
    "top_logprobs",
)
_HARMLESS: dict[str, tuple[JsonValue, ...]] = {
    "tool_choice": ("none", "auto"),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "top_logprobs": (0,),
}
"""Values of refused parameters that ask for nothing."""


class CompletionMessage(BaseModel):
    """A message. Further members, such as those of an earlier answer that is sent back, are ignored."""

    model_config = ConfigDict(extra="ignore", strict=True)
    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[ContentPart] | None = None


class SchemaFormat(BaseModel):
    """The schema of `response_format`."""

    model_config = ConfigDict(extra="ignore", strict=True, populate_by_name=True)
    json_schema: dict[str, JsonValue] = Field(alias="schema")


class ResponseFormat(BodyModel):
    """What the answer has to be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: SchemaFormat | None = None


class StreamOptions(BaseModel):
    """Options of a stream."""

    model_config = ConfigDict(extra="ignore", strict=True)
    include_usage: bool = False


class ChatBody(BodyModel):
    """The body. model: the agent's type."""

    model: str
    messages: list[CompletionMessage]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    response_format: ResponseFormat | None = None
    metadata: dict[str, str] | None = None
    user: str | None = None
    n: int | None = None
    # Refused, unless they ask for nothing:
    tools: JsonValue = None
    functions: JsonValue = None
    tool_choice: JsonValue = None
    function_call: JsonValue = None
    audio: JsonValue = None
    modalities: JsonValue = None
    moderation: JsonValue = None
    prediction: JsonValue = None
    web_search_options: JsonValue = None
    logprobs: JsonValue = None
    top_logprobs: JsonValue = None
    # Ignored:
    frequency_penalty: JsonValue = None
    logit_bias: JsonValue = None
    max_completion_tokens: JsonValue = None
    max_tokens: JsonValue = None
    parallel_tool_calls: JsonValue = None
    presence_penalty: JsonValue = None
    prompt_cache_key: JsonValue = None
    prompt_cache_options: JsonValue = None
    prompt_cache_retention: JsonValue = None
    reasoning_effort: JsonValue = None
    safety_identifier: JsonValue = None
    seed: JsonValue = None
    service_tier: JsonValue = None
    stop: JsonValue = None
    store: JsonValue = None
    temperature: JsonValue = None
    top_p: JsonValue = None
    verbosity: JsonValue = None

    def asked(self, bound: BoundUser | None, key: str | None) -> AskedRun:
        """Return the run that is asked for. bound: for whom a user's token speaks. key: the request's idempotency key.

        Where an instance is named, it has the conversation, and only what the user said last is taken. Otherwise the
        conversation is the client's: the run reads what the request says, in an instance of its own. A user's token
        always has an instance, because nobody but the application may say what an agent has answered.
        Raises: InvalidInput (code `unsupported_parameter`, `unsupported_content`, `no_user_message`, `invalid_user`,
            `invalid_body`).
        """
        self._check_parameters()
        metadata = dict(self.metadata or {})
        instance_id = metadata.pop(INSTANCE, None if bound is None else OF_A_USER)
        messages = self._read()
        prior, prior_files = earlier_messages(messages) if instance_id is None else _nothing()
        return AskedRun(
            newest_question(messages),
            metadata,
            instance_id,
            key,
            bool(self.stream),
            None if self.user is None else User(self.user),
            self._schema(),
            prior=prior,
            files=newest_files(messages),
            prior_files=prior_files,
        )

    @property
    def ignored(self) -> list[str]:
        """The names of what the request has without effect."""
        names = [name for name in IGNORED if getattr(self, name) is not None]
        return [*names, *({"system"} if any(one.role in ("system", "developer") for one in self.messages) else ())]

    def _read(self) -> list[ReadMessage]:
        return [(message.role, message.content) for message in self.messages]

    def _schema(self) -> JsonObject | None:
        wanted = self.response_format
        if wanted is None or wanted.type == "text":
            return None
        if wanted.type == "json_object":
            return {"type": "object"}
        if wanted.json_schema is None:
            problems = ["response_format.json_schema: it is missing"]
            raise InvalidInput("the body does not fit", code="invalid_body", problems=problems)
        return wanted.json_schema.json_schema

    def _check_parameters(self) -> None:
        """Raises: InvalidInput (code `unsupported_parameter`)."""
        for name in _REFUSED:
            value = getattr(self, name)
            if value and value not in _HARMLESS.get(name, ()):
                why = "an agent has the tools of its definition" if name in _TOOLS else "an agent cannot do this"
                raise unsupported(name, why)
        if self.n not in (None, 1):
            raise unsupported("n", "an agent gives one answer")


def unsupported(name: str, why: str) -> InvalidInput:
    """Return the error for a parameter that would change what is answered."""
    return InvalidInput(f"{name} is not supported: {why}", code="unsupported_parameter", param=name)


def _nothing() -> tuple[list[PriorMessage], list[list[AskedFile]]]:
    return [], []
