from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from retain.json_text import MAX_NESTING, JsonObject, read_json

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
