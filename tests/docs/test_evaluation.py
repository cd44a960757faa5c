"""The datasets that the page about evaluation prints are datasets."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from retain.cli.yaml_text import read_yaml
from retain.evaluation.dataset import Dataset
from tests.docs.markdown import page
from tests.evaluation.world import EvaluationWorld

_EXAMPLES = page("docs/evaluation.md").blocks("yaml")


@pytest.mark.parametrize("example", _EXAMPLES, ids=range(len(_EXAMPLES)))
def test_every_dataset_of_the_page_is_accepted(example: str) -> None:
    assert Dataset.model_validate_json(json.dumps(read_yaml(example))).cases


async def test_the_first_dataset_of_the_page_passes_with_the_agents_of_the_repository() -> None:
    with closing(EvaluationWorld()) as world:
        run = await world.evaluated(Dataset.model_validate_json(json.dumps(read_yaml(_EXAMPLES[0]))))
    assert [result.outcome for result in run.results] == ["passed"]


def test_the_page_shows_calls_stubbed_answers_and_a_judge() -> None:
    text = "\n".join(_EXAMPLES)
    assert all(f"{field}:" in text for field in ("answers", "calls", "judge", "criteria", "memories", "thresholds"))
