from __future__ import annotations

import ast
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from retain import json_text
from retain.json_text import (
    MAX_NESTING,
    JsonObject,
    NestedTooDeeply,
    check_nested,
    read_json,
    read_json_within,
    read_own_json,
)
from tools.metrics.source import SourceTree, working_tree

Json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.text('[]{}"\\', max_size=99),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def nested(levels: int, leaf: str = "0") -> str:
    return "[" * levels + leaf + "]" * levels


@dataclass(frozen=True)
class Parcel:
    contents: JsonObject


def test_the_types_can_be_read_at_run_time() -> None:
    assert get_type_hints(Parcel) == {"contents": JsonObject}
    parcel = TypeAdapter(Parcel).validate_python({"contents": {"a": [{"b": None}]}})
    assert parcel == Parcel({"a": [{"b": None}]})


@given(Json)
def test_json_reads_as_it_was_written(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


def test_the_deepest_nesting_is_read_and_one_level_more_is_not() -> None:
    assert json.dumps(read_json(nested(MAX_NESTING))) == nested(MAX_NESTING)
    with pytest.raises(ValueError, match="nested"):
        read_json(nested(MAX_NESTING + 1))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param('{"a":' * 100_000, id="objects without an end"),
        pytest.param("[" * 100_000 + '"', id="lists before an open text"),
        pytest.param('["\\"' + '",["\\\\' * 100_000, id="escapes in between"),
        pytest.param("[" * 65 + '"' + '\\"' * 200_000, id="before a string of escapes without an end"),
        pytest.param("[" * 65 + '"' + "\\" * 200_001, id="before a string that ends within an escape"),
    ],
)
def test_a_depth_that_would_end_the_isolate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="nested"):
        read_json(text)


@pytest.mark.parametrize(
    "value",
    [
        pytest.param([[]] * 1000, id="many lists next to each other"),
        pytest.param(["[" * 1000, '"{' * 1000, "\\" * 999 + "["], id="brackets inside texts"),
    ],
)
def test_brackets_that_do_not_nest_add_no_depth(value: Any) -> None:
    assert read_json(json.dumps(value)) == value


@pytest.mark.parametrize("text", ["", "{", "]" * 100, '"a\nb"', "[}" * 33])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        read_json(text)


def test_a_string_of_escapes_without_an_end_is_read_in_linear_time() -> None:
    """Each of its quotes could begin a string that has no end: 100,000 of them took minutes."""
    with pytest.raises(json.JSONDecodeError):
        read_json("[]," * 65 + '"' + '\\"' * 100_000)


@given(Json, st.text('[]{}"\\', max_size=20))
def test_what_begins_within_a_text_is_read_whole_and_no_further(value: Any, rest: str) -> None:
    written = json.dumps([value])
    assert read_json_within(f"so: {written}{rest}", 4) == ([value], 4 + len(written))


@pytest.mark.parametrize("text", ["[", "", "a", "[}", '["', nested(MAX_NESTING + 1), "[" * 100_000, '{"a":' * 100_000])
def test_what_does_not_begin_a_value_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 -- of any kind
        read_json_within(text, 0)


def test_every_field_of_an_object_is_seen_when_it_is_asked_for() -> None:
    seen: list[Any] = []
    read_json('{"a": 1, "a": {"b": 2}}', on_pairs=seen.append)
    assert seen == [[("b", 2)], [("a", 1), ("a", None)]]


def test_more_levels_are_read_around_texts_that_were_checked() -> None:
    assert read_json(nested(MAX_NESTING + 2), levels=MAX_NESTING + 2) == read_own_json(nested(MAX_NESTING + 2))
    with pytest.raises(NestedTooDeeply):
        read_json(nested(MAX_NESTING + 3), levels=MAX_NESTING + 2)


def _deep(levels: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_a_value_is_checked_before_it_is_written() -> None:
    check_nested(_deep(MAX_NESTING))
    check_nested({"a": ([{}] * 1000,)})
    circle: list[Any] = []
    circle.append({"b": (circle,)})
    for value in (_deep(MAX_NESTING + 1), _deep(100_000), circle):
        with pytest.raises(NestedTooDeeply):
            check_nested(value)


def test_a_value_that_holds_the_same_one_often_is_checked_in_linear_time() -> None:
    value: list[Any] = []
    for _ in range(MAX_NESTING - 1):
        value = [value, value]
    check_nested(value)


READERS = {"json.loads", "json.load", "json.JSONDecoder", "pydantic_core.from_json"}


def _readers_in(tree: SourceTree) -> set[str]:
    found = set()
    for file in tree.code:
        names = {
            f"{node.value.id}.{node.attr}"
            for node in ast.walk(file.tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        names |= {
            f"{node.module}.{alias.name}"
            for node in ast.walk(file.tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        found |= {file.module} if names & READERS else set()
    return found


def test_nothing_that_is_uploaded_has_another_reader() -> None:
    """The linter forbids them, except in the folders that may use the platform: there it forbids nothing."""
    assert _readers_in(working_tree()) == {"retain.json_text"}
    other = {"workers/other.py": "import json\njson.loads('')\n", "workers/third.py": "from json import load\n"}
    assert _readers_in(SourceTree.of(other)) == {"other", "third"}


def test_a_value_is_looked_at_no_deeper_than_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, holders = [], json_text._holders

    def noting(values: Iterable[object]) -> Iterable[object]:
        looked.append(values)
        return holders(values)

    monkeypatch.setattr(json_text, "_holders", noting)
    check_nested({"a": ["b"]})
    assert len(looked) == 3
