"""The page about agents has every field of a definition, and every limit of a run with its bounds and its default."""

from __future__ import annotations

import re

import pytest
from pydantic import BaseModel, TypeAdapter

from retain.agents.definitions import AgentDefinition, Limits, MemoryConfig, ModelConfig
from tests.docs.markdown import page, spans

_ROWS = dict(
    re.findall(r"^\| `(\w+)` \| (.*) \|$", page("docs/agents.md").text.partition("## Limits")[2], re.MULTILINE)
)


@pytest.mark.parametrize("name", sorted(Limits.model_fields))
def test_a_limit_is_documented_with_its_bounds_and_its_default(name: str) -> None:
    schema = TypeAdapter(Limits).json_schema()["properties"][name]
    number = next((part for part in schema.get("anyOf", []) if part.get("type") != "null"), schema)
    if "enum" in number:
        assert _ROWS[name].split(" | ")[-2:] == [", ".join(f"`{value}`" for value in number["enum"]), schema["default"]]
        return
    low, high = number.get("minimum", number.get("exclusiveMinimum")), number.get("maximum")
    bounds, default = _ROWS[name].split(" | ")[-2:]
    beginning = f"above {low}, to" if "exclusiveMinimum" in number else f"{low:,} to"
    assert bounds == (f"from {low}" if high is None else f"{beginning} {high:,.0f}")
    assert default == ("unlimited" if schema["default"] is None else f"{schema['default']:,}")


def test_the_bounds_of_an_answer_are_documented() -> None:
    schema = TypeAdapter(ModelConfig).json_schema()["properties"]["max_output_tokens"]
    text = f"`max_output_tokens` ({schema['default']}; {schema['minimum']} to {schema['maximum']:,})"
    assert text in page("docs/agents.md").text


@pytest.mark.parametrize(
    ("heading", "model"), [("## A definition", AgentDefinition), ("### What it remembers", MemoryConfig)]
)
def test_each_field_of_a_definition_has_a_row(heading: str, model: type[BaseModel]) -> None:
    table = page("docs/agents.md").text.partition(f"\n{heading}\n")[2].partition("\n#")[0]
    cells = [line.split(" | ")[0] for line in table.splitlines() if line.startswith("| `")]
    assert {name for cell in cells for name in spans(cell)} == set(model.model_fields)
