"""Datasets: what is refused, and what their version says."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from retain.errors import InvalidInput, NotFound
from retain.evaluation.dataset import Dataset, check_dataset_name
from retain.evaluation.datasets import Datasets
from retain.host.clock import ManualClock
from tests.evaluation.world import SHIPPED, shipped
from tests.support.databases import migrated_d1

CASE: dict[str, Any] = {"id": "a", "input": "Hi.", "expected": {"contains": ["x"]}}


def made(case: dict[str, Any] | None = None, **fields: Any) -> Dataset:
    content = {"target": {"agent": "sdr"}, "cases": [{**CASE, **(case or {})}], **fields}
    return Dataset.model_validate_json(json.dumps(content))


@pytest.mark.parametrize(
    ("case", "fields"),
    [
        pytest.param({"expected": {}}, {}, id="nothing is expected"),
        pytest.param({"expected": {"matches": ["("]}}, {}, id="an invalid regular expression"),
        pytest.param({"expected": {"matches": ["a" * 501]}}, {}, id="a long regular expression"),
        pytest.param({"expected": {"schema": {"type": 1}}}, {}, id="an invalid JSON Schema"),
        pytest.param({"expected": {"calls": {"calls": []}}}, {}, id="no calls in any order"),
        pytest.param(
            {"expected": {"calls": {"calls": [{"tool": "t", "arguments": {"a": {"$matches": "("}}}]}}},
            {},
            id="an invalid regular expression in an argument",
        ),
        pytest.param({"expected": {"memories": {"relevant": ["m"]}}}, {}, id="a memory that the case does not have"),
        pytest.param({"memories": [{"id": "m", "content": "x"}] * 2}, {}, id="two memories with an id"),
        pytest.param(
            {"memories": [{"id": "m", "content": "x"}, {"id": "n", "content": "x"}]}, {}, id="the same memory twice"
        ),
        pytest.param({"memories": [{"id": "m", "content": "x", "agent_type": "a", "house": "b"}]}, {}, id="two scopes"),
        pytest.param({"tools": {"t": {"answers": []}}}, {}, id="a stub without an answer"),
        pytest.param({"tools": {"t": {"answers": [{}]}}}, {}, id="an answer without anything"),
        pytest.param({"tools": {"t": {"answers": [{"answer": 1, "error": "x"}]}}}, {}, id="answer and error"),
        pytest.param(
            {"tools": {"t": {"answers": [{"when": {"a": {"$matches": "("}}, "answer": 1}]}}},
            {},
            id="an invalid pattern in when",
        ),
        pytest.param({"surprise": 1}, {}, id="an unknown field"),
        pytest.param({"expected": {"judge": {"criteria": "c", "at_least": "0.5"}}}, {}, id="a text for a number"),
        pytest.param({"expected": {"judge": {"criteria": "c", "at_least": True}}}, {}, id="a flag for a number"),
        pytest.param({"expected": {"calls": {"calls": [{"tool": "t", "failed": "no"}]}}}, {}, id="a text for a flag"),
        pytest.param({}, {"cases": []}, id="no cases"),
        pytest.param({}, {"cases": [CASE, CASE]}, id="two cases with an id"),
        pytest.param({}, {"target": {}}, id="no target"),
        pytest.param({}, {"target": {"agent": "sdr", "recall": {}}}, id="two targets"),
        pytest.param({}, {"thresholds": {"judge": 1}}, id="a threshold of an unknown score"),
        pytest.param({}, {"thresholds": {"contains": 1.1}}, id="a threshold beyond 1"),
        pytest.param({"earlier": ["x"]}, {"target": {"recall": {}}}, id="recall has no earlier inputs"),
        pytest.param({"input": {}}, {"target": {"recall": {}}}, id="recall takes a text"),
        pytest.param(
            {"memories": [{"id": "m", "content": "x"}], "expected": {"memories": {"relevant": ["m"], "k": 6}}},
            {"target": {"recall": {}}},
            id="more results than recall gives",
        ),
    ],
)
def test_an_invalid_dataset_is_refused(case: dict[str, Any], fields: dict[str, Any]) -> None:
    made()
    with pytest.raises(ValidationError):
        made(case, **fields)


def test_a_memory_that_cannot_be_stored_is_refused_with_its_own_code() -> None:
    with pytest.raises(InvalidInput) as refused:
        made({"memories": [{"id": "m", "content": "x", "confidence": 2}]}).check_memories()
    assert refused.value.code == "invalid_confidence"


@pytest.mark.parametrize("name", ["", "A", "a b", "a/b", "a" * 65])
def test_an_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="1 to 64"):
        check_dataset_name(name)


@given(st.permutations(sorted(CASE)))
def test_the_version_depends_on_the_content_and_not_on_its_spelling(names: list[str]) -> None:
    shuffled = {name: CASE[name] for name in names}
    assert made(cases=[shuffled]).version == made().version


async def test_an_input_reaches_its_agent_with_its_fields_in_the_order_in_which_they_were_put() -> None:
    order = {"order": "SO-1", "mail": {"subject": "Refund", "body": "Please."}, "at": 1}
    content = made({"input": order})
    assert content.version == made({"input": {name: order[name] for name in sorted(order)}}).version
    with closing(migrated_d1()) as sql:
        datasets = Datasets(sql, ManualClock())
        await datasets.put("acme", "d", content)
        [shown] = await datasets.cases("acme", "d", content.version)
        read = (await datasets.case("acme", "d", content.version, 0)).input
    assert shown is not None
    assert [json.dumps(one) for one in (shown["input"], read)] == [json.dumps(order)] * 2


def test_any_other_content_is_another_version() -> None:
    others = [
        made(),
        made({"input": "Ho."}),
        made({"id": "b"}),
        made({"expected": {"contains": ["y"]}}),
        made(description="other"),
        made(thresholds={"contains": 1.0}),
        made(cases=[CASE, {**CASE, "id": "b"}]),
        made(cases=[{**CASE, "id": "b"}, CASE]),
        made(target={"agent": "order_triage"}),
    ]
    assert len({dataset.version for dataset in others}) == len(others)


@pytest.mark.parametrize("name", SHIPPED)
def test_a_dataset_reads_back_as_it_was_stored(name: str) -> None:
    content = shipped(name)
    again = {**json.loads(content.definition()), "cases": [json.loads(case) for case in content.content()]}
    assert Dataset.model_validate(again) == content
    assert Dataset.model_validate(again).version == content.version


async def test_a_dataset_has_nothing_of_another_tenant_s_of_the_same_name() -> None:
    with closing(migrated_d1()) as sql:
        datasets, mine, theirs = Datasets(sql, ManualClock()), made(), made({"input": "Bye."})

        async def of_rival() -> list[Any]:
            rows = [(await sql.run(f"SELECT * FROM {table} WHERE tenant_id = 'rival'")).rows for table in tables]
            return [*rows, await datasets.info("rival", "d"), await datasets.page("rival", after="", limit=9)]

        tables = ("eval_datasets", "eval_cases")
        await datasets.put("rival", "d", theirs)
        await datasets.put("rival", "other", theirs)
        before = await of_rival()
        for dataset in (mine, made({"input": "Third."}), theirs, mine):
            shown, new = await datasets.put("acme", "d", dataset)
            assert (shown.version, new) == (dataset.version, True)
            assert await of_rival() == before
        assert await datasets.page("acme", after="", limit=9) == [await datasets.info("acme", "d")]
        assert await datasets.cases("acme", "d", theirs.version) == []
        assert (await datasets.case("acme", "d", mine.version, 0)).input == "Hi."
        await datasets.delete("acme", "d")
        assert await of_rival() == before
        for name in ("d", "other"):
            with pytest.raises(NotFound):
                await datasets.info("acme", name)
            with pytest.raises(NotFound):
                await datasets.case("acme", name, theirs.version, 0)
