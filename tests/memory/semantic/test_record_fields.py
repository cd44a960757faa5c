"""A record's fields are defined once: everything that reads or writes them has the same fields."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from retain.admin.memories.memory_bodies import EditBody, MemoryBody
from retain.errors import InvalidInput
from retain.evaluation.dataset import Fixture
from retain.lifecycle.transfer.shapes import EditedShape, PlaceShape, StoredShape
from retain.memory.filters import FIELDS
from retain.memory.records.limits import END_OF_NUMBERS, check
from retain.memory.records.record import EDITABLE, RECORD_FIELDS, NewRecord, Record, Utterance
from retain.memory.records.rows import RECORD_COLUMNS, record_of, write_record
from tests.memory.semantic.substrate import Substrate

NEW = {one.name for one in fields(NewRecord)} - {"utterance"}
PLACE = {one.name for one in fields(Utterance)}


def record(**changes: Any) -> Record:
    """Return a record with these fields."""
    common: dict[str, Any] = {
        "id": "r", "tenant_id": "acme", "scope_id": "tenant", "content": "Ann likes tea.", "valid_from_ms": 1,
        "valid_to_ms": None, "recorded_at_ms": 2, "updated_at_ms": 3, "superseded_by": None, "edited": False,
        "utterance": None, "source": {"origin": "agent"},
    }  # fmt: skip
    return Record(**{**common, **changes})


def test_a_record_is_shown_with_every_field_in_one_order() -> None:
    assert sorted(RECORD_FIELDS) == sorted(one.name for one in fields(Record))
    assert list(record(utterance=Utterance("c", 0, "Ann")).to_json()) == [
        "id", "tenant_id", "scope_id", "kind", "content", "metadata", "subject", "predicate", "object", "confidence",
        "importance", "valid_from_ms", "valid_to_ms", "expires_at_ms", "recorded_at_ms", "updated_at_ms",
        "superseded_by", "edited", "utterance", "source", "gaps", "claims",
    ]  # fmt: skip


async def test_the_table_has_a_column_for_every_field(substrate: Substrate) -> None:
    columns = [row["name"] for row in await substrate.rows("SELECT name FROM pragma_table_info('memory_records')")]
    assert sorted(columns) == sorted([*RECORD_COLUMNS, "number"])


def test_a_filter_names_fields_that_exist() -> None:
    spoken = {"said_at_ms"}  # the time of the utterance, by the name of its column
    assert set(FIELDS) <= {one.name for one in fields(Record)} | PLACE | spoken


@pytest.mark.parametrize(
    ("model", "names"),
    [
        (MemoryBody, NEW),
        (EditBody, {*EDITABLE, "valid_to_ms"}),
        (Fixture, NEW | {"id", "user_id", "agent_type", "house", "tenant_wide"}),
        (StoredShape, set(RECORD_FIELDS)),
        (EditedShape, set(EDITABLE)),
        (PlaceShape, PLACE),
    ],
    ids=["stored over HTTP", "edited over HTTP", "fixture", "stored in an export", "edited in an export", "place"],
)
def test_an_edge_accepts_the_fields_of_the_core(model: Any, names: set[str]) -> None:
    assert set(model.model_fields) == names


@pytest.mark.parametrize("kept", [{}, {"edited": True}, {"utterance": Utterance("c", -3, "Ann", 5)}, {"confidence": 0}])
def test_a_record_survives_its_row(kept: dict[str, Any]) -> None:
    wanted = record(metadata={"a": [1]}, subject="Ann", expires_at_ms=9, **kept)
    _, values = write_record(wanted)
    found = record_of(dict(zip(RECORD_COLUMNS, values, strict=True)))
    assert found == wanted
    assert isinstance(found.edited, bool)
    assert isinstance(found.confidence, float)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"subject": ""}, "invalid_subject"),
        ({"importance": 1.01}, "invalid_importance"),
        ({"valid_from_ms": None}, "invalid_valid_from_ms"),
        ({"valid_to_ms": END_OF_NUMBERS}, "invalid_input"),
        ({"updated_at_ms": -1}, "invalid_input"),
        ({"utterance": Utterance("c", END_OF_NUMBERS, "Ann")}, "invalid_position"),
    ],
    ids=["text", "share", "no time", "time too late", "time too early", "inside the utterance"],
)
def test_an_imported_record_has_the_same_limits(changes: dict[str, Any], code: str) -> None:
    check(record())
    with pytest.raises(InvalidInput) as raised:
        check(record(**changes))
    assert raised.value.code == code


def test_only_one_function_builds_the_vector_namespace() -> None:
    """It is an isolation boundary: a second spelling could leave one of the two unguarded."""
    found = {
        path.name
        for path in Path("workers").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.JoinedStr) and "agent_memory_semantic" in ast.unparse(node)
    }
    assert found == {"vector_names.py"}
