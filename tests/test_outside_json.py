"""Each function that reads JSON or YAML from outside refuses what is nested too deeply as it refuses what is not JSON.

tests/e2e/test_nesting.py sends such texts to the real workerd.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from yaml import YAMLError

from retain.agents.ledgers.declared import declared_decision
from retain.agents.tools.functions import FunctionTool, tool
from retain.cli.yaml_text import read_yaml
from retain.errors import InvalidInput, RetainError
from retain.evaluation.scoring import scores
from retain.gateway.keys import read_grant
from retain.gateway.tool_config import parse_tool_config
from retain.host.crypto import HostCrypto
from retain.http import Request
from retain.ingest.extraction import SourceMessage
from retain.ingest.extractors.llm_extractor import read_facts
from retain.items.placement import read_placements
from retain.items.rekeying.patterns import load_patterns
from retain.json_text import MAX_NESTING
from retain.lifecycle.terms import Term
from retain.memory.recalled import without_recalled
from retain.memory.records.limits import MAX_METADATA_NESTING, MetadataLimit
from retain.models.endpoint import read_object
from retain.models.providers.tool_calls import read_call
from retain.sealing.keyring import Keyring
from retain.sealing.pii import FIELDS, declared_in

LEVELS = 100_000
"""Far more than the decoder of any Python reads."""
TEXTS = {"lists": "[" * LEVELS + "]" * LEVELS, "objects": '{"a":' * LEVELS + "1" + "}" * LEVELS, "open": "[{" * LEVELS}


def _opened(text: str) -> object:
    return asyncio.run(Keyring(HostCrypto(), "", "", lambda _: bytes(32)).open("name", text))


REFUSING: dict[str, tuple[Callable[[str], object], str]] = {
    "a body": (lambda text: Request("POST", "/", {}, {}, text, "localhost", "r").json(), "malformed_json"),
    "an API key's record": (read_grant, "invalid_key_record"),
    "a tool's configuration": (parse_tool_config, "invalid_tool_configuration"),
    "placements": (read_placements, "invalid_placement"),
    "legacy patterns": (load_patterns, "invalid_legacy_pattern"),
    "the answer of a model's server": (read_object, "malformed_answer"),
    "a model's facts": (lambda text: read_facts(text, [SourceMessage("m", "Ann", "x")]), "malformed_extraction"),
    "a value that is searched for PII": (lambda text: declared_in(text, FIELDS), "value_too_deep"),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize(("read", "code"), REFUSING.values(), ids=list(REFUSING))
def test_a_deep_text_is_refused_with_the_code_of_one_that_is_not_json(
    read: Callable[[str], object], code: str, text: str
) -> None:
    with pytest.raises(RetainError) as refused:
        read(text)
    assert refused.value.code == code


READING: dict[str, Callable[[str], bool]] = {
    "a declared decision": lambda text: declared_decision(text, ["yes"]) is None,
    "an exact answer": lambda text: scores.exact(text, {"a": 1}).value == 0,
    "an answer with a schema": lambda text: scores.schema(text, {"type": "object"}).value == 0,
    "a call's arguments": lambda text: read_call("1", "tool", text).problem is not None,
    "a text that an erasure searches": lambda text: Term.of("Ann").in_stored(f"{text} Ann"),
    "recalled words": lambda text: without_recalled(f'tea {{"memories": [{text}') == f'tea {{"memories": [{text}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
@pytest.mark.parametrize("read", READING.values(), ids=list(READING))
def test_a_deep_text_is_read_as_one_that_is_not_json(read: Callable[[str], bool], text: str) -> None:
    assert read(text)


@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_a_deep_text_is_not_a_sealed_one(text: str) -> None:
    with pytest.raises(ValueError, match="nested"):
        _opened(text)


def _deep(levels: int) -> object:
    value: object = 0
    for _ in range(levels):
        value = {"a": value}
    return value


@tool
def deep_answer() -> object:
    """Answer with a value that is nested too deeply."""
    return [_deep(LEVELS), float("nan")]


async def test_a_deep_answer_of_a_function_is_refused() -> None:
    with pytest.raises(RetainError) as refused:
        await FunctionTool(deep_answer).call({}, lambda: pytest.fail("it takes none"))
    assert refused.value.code == "invalid_result"


def test_deep_metadata_are_refused_before_they_are_written() -> None:
    MetadataLimit().check("metadata", _deep(MAX_METADATA_NESTING))
    for levels in (MAX_METADATA_NESTING + 1, LEVELS):
        with pytest.raises(InvalidInput):
            MetadataLimit().check("metadata", _deep(levels))


NINES = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
YAML = {
    **TEXTS,
    "dashes": "- " * LEVELS,
    "an alias of what it is in": "a: &a [*a]",
    "aliases of aliases": f"a0: &a0 [x]\n{NINES}",
}


@pytest.mark.parametrize("text", YAML.values(), ids=list(YAML))
def test_yaml_without_bounds_is_refused(text: str) -> None:
    with pytest.raises(YAMLError):
        read_yaml(text)


def test_yaml_is_read_as_deeply_as_json_and_an_alias_is_a_value_like_another() -> None:
    assert read_yaml("[" * MAX_NESTING + "]" * MAX_NESTING) is not None
    assert read_yaml("a: &a [1, 2]\nb: *a") == {"a": [1, 2], "b": [1, 2]}
