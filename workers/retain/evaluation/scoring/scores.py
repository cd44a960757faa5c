"""Scores, the observations that are scored, and the scorers of texts. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from retain.evaluation.expectations import Metric
from retain.json_schema import compile_schema
from retain.json_text import Json, JsonObject, read_json
from retain.text_patterns import TextPattern

_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Called:
    """A tool call that was made. agent: who made it."""

    agent: str
    tool: str
    arguments: JsonObject
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Observation:
    """What was observed of a case.

    calls: in order, those of a delegate after the call that delegates. retrieved: ids of fixtures, best first or in the
    order in which the agent got them; a memory that is not a fixture has the id of its record.
    """

    output: str
    calls: tuple[Called, ...] = ()
    retrieved: tuple[str, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Score:
    """One score. value: in [0, 1]. passed: None when the case sets no bound for it. detail: why it is not 1."""

    name: Metric
    value: float
    passed: bool | None
    detail: str | None = None

    def to_json(self) -> JsonObject:
        """Return the score as stored and shown."""
        return asdict(self)


def exact(output: str, wanted: Json) -> Score:
    """Score whether the output equals a text or, read as JSON, a value: 1 equals 1.0, but not true."""
    if isinstance(wanted, str):
        same = output == wanted
    else:
        try:
            same = same_json(read_json(output), wanted)
        except ValueError:
            return _score("exact", 0, "the output is not JSON")
    return _score("exact", int(same), "the output differs")


def contains(output: str, wanted: Sequence[str]) -> Score:
    """Score the share of the texts that occur in the output, case-sensitively."""
    missing = [text for text in wanted if text not in output]
    return _share("contains", wanted, missing, "missing")


def excludes(output: str, unwanted: Sequence[str]) -> Score:
    """Score the share of the texts that do not occur in the output."""
    present = [text for text in unwanted if text in output]
    return _share("excludes", unwanted, present, "present")


def matches(output: str, patterns: Sequence[str]) -> Score:
    """Score the share of the regular expressions that are found in the output."""
    missing = [pattern for pattern in patterns if not found(pattern, output)]
    unsearched = missing and _searched(missing[0], output) is None
    return _share("matches", patterns, missing, "the output is too long to search for" if unsearched else "not found")


def found(pattern: str, text: str) -> bool:
    """Return whether a pattern is found in a text; False as well for one that is not searched: too large, or too long."""
    return _searched(pattern, text) is True


def _searched(pattern: str, text: str) -> bool | None:
    try:
        return TextPattern(pattern).found_in(text)
    except ValueError:
        return None


def schema(output: str, wanted: Mapping[str, object]) -> Score:
    """Score whether the output, read as JSON, fits the schema."""
    try:
        value = read_json(output)
    except ValueError:
        return _score("schema", 0, "the output is not JSON")
    violation = compile_schema(wanted)(value)
    if violation is None:
        return _score("schema", 1, None)
    return _score("schema", 0, f"{violation.path or 'the output'}: {violation.problem}")


def same_json(one: object, other: object) -> bool:
    """Return whether two JSON values are equal; unlike in Python, true is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(same_json(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return one == other


def _share(name: Metric, asked: Sequence[str], wrong: Sequence[str], what: str) -> Score:
    value = (len(asked) - len(wrong)) / len(asked)
    return _score(name, value, f"{what}: {wrong[0][:_MAX_SHOWN]}" if wrong else None)


def _score(name: Metric, value: float, detail: str | None) -> Score:
    return Score(name, float(value), value == 1, None if value == 1 else detail)
