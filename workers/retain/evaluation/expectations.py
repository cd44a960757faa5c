"""What a case expects: one part per scorer, as in a dataset."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from retain.json_schema import compile_schema
from retain.json_text import JsonObject
from retain.text_patterns import TextPattern

Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")]
Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Share = Annotated[float, Field(ge=0, le=1)]
Texts = Annotated[tuple[Annotated[str, Field(min_length=1, max_length=2000)], ...], Field(strict=False, max_length=50)]
RetrievalMetric = Literal["recall", "precision", "mrr", "ndcg"]
Metric = Literal[
    "pass_rate",
    "exact",
    "contains",
    "excludes",
    "matches",
    "schema",
    "calls",
    "judge",
    "recall",
    "precision",
    "mrr",
    "ndcg",
]
_ALL: dict[RetrievalMetric, Share] = {"recall": 1.0}


class Strict(BaseModel):
    """A part of a dataset. It refuses unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ExpectedCall(Strict):
    """An expected tool call.

    agent: who makes it, by default the dataset's agent; a delegate's name for its calls. arguments: those that it has at
    least, or with `match: equal` exactly; None for any. A value {"$matches": pattern} fits any text in which the pattern
    is found. failed: whether the tool reported an error; None for either.
    """

    tool: Name
    agent: Name | None = None
    arguments: dict[str, JsonValue] | None = None
    match: Literal["subset", "equal"] = "subset"
    failed: bool | None = None

    @field_validator("arguments")
    @classmethod
    def _patterns_compile(cls, arguments: JsonObject | None) -> JsonObject | None:
        check_patterns(arguments)
        return arguments


class ExpectedCalls(Strict):
    """The expected tool-call trace.

    order: `any` for all of these calls in any order, `kept` for these calls in this order with others between, `exact` for
    these calls and no others, in this order; an empty list then expects none.
    """

    order: Literal["any", "kept", "exact"] = "any"
    calls: Annotated[tuple[ExpectedCall, ...], Field(strict=False, max_length=50)]

    @model_validator(mode="after")
    def _expects_something(self) -> ExpectedCalls:
        if not self.calls and self.order != "exact":
            raise ValueError("an empty list of calls needs order: exact")
        return self


class ExpectedMemories(Strict):
    """The fixture memories that should be found: their ids, or each id with its grade of relevance.

    k: how many results count. at_least: what each metric must reach for the case to pass.
    """

    relevant: (
        Annotated[tuple[Id, ...], Field(strict=False, min_length=1, max_length=100)]
        | Annotated[dict[Id, Annotated[int, Field(ge=1, le=10)]], Field(min_length=1, max_length=100)]
    )
    k: int = Field(default=5, ge=1, le=50)
    at_least: dict[RetrievalMetric, Share] = Field(default_factory=lambda: dict(_ALL))

    @property
    def grades(self) -> dict[str, int]:
        """The grade of each relevant memory."""
        return dict(self.relevant) if isinstance(self.relevant, dict) else dict.fromkeys(self.relevant, 1)


class JudgeCriteria(Strict):
    """The criteria by which a language model judges the output. at_least: the score that it must reach."""

    criteria: str = Field(min_length=1, max_length=4000)
    at_least: Share = 0.5


class Expected(Strict):
    """What a case expects; the given parts are scored, and all of them must pass.

    exact: the whole output, as a text or as a JSON value. contains, excludes: texts that occur and that do not.
    matches: regular expressions that are found. schema: a JSON Schema that the output, read as JSON, fits.
    """

    exact: str | dict[str, JsonValue] | list[JsonValue] | None = None
    contains: Texts = ()
    excludes: Texts = ()
    matches: Texts = ()
    output_schema: dict[str, JsonValue] | None = Field(default=None, alias="schema")
    calls: ExpectedCalls | None = None
    memories: ExpectedMemories | None = None
    judge: JudgeCriteria | None = None

    @field_validator("matches")
    @classmethod
    def _compile(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            TextPattern(pattern)
        return patterns

    @field_validator("output_schema")
    @classmethod
    def _is_a_schema(cls, schema: JsonObject | None) -> JsonObject | None:
        if schema is not None:
            compile_schema(schema)
        return schema

    @model_validator(mode="after")
    def _expects_something(self) -> Expected:
        if not self.metrics:
            raise ValueError("a case must expect something")
        return self

    @property
    def metrics(self) -> list[Metric]:
        """The names of the scores that a case gets, in order."""
        given: dict[Metric, object] = {
            "exact": self.exact is not None,
            "contains": self.contains,
            "excludes": self.excludes,
            "matches": self.matches,
            "schema": self.output_schema is not None,
            "calls": self.calls is not None,
            "judge": self.judge is not None,
        }
        found = [name for name, wanted in given.items() if wanted]
        return [*found, "recall", "precision", "mrr", "ndcg"] if self.memories is not None else found


def check_patterns(value: object) -> None:
    """Check the patterns {"$matches": pattern} anywhere in a value. Raises: ValueError."""
    if isinstance(value, dict):
        if set(value) == {"$matches"}:
            if not isinstance(value["$matches"], str):
                raise ValueError("$matches takes a regular expression")
            TextPattern(value["$matches"])
        for part in value.values():
            check_patterns(part)
    elif isinstance(value, list):
        for part in value:
            check_patterns(part)
