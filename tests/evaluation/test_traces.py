"""What a case is scored by when its runs have much to show: many earlier runs, and long answers of delegates."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

from retain.agents.tools.built_in import MAX_RESULT_BYTES
from tests.agents.stepped_chat import SteppedChat, calls, says
from tests.evaluation.test_runner import outcomes
from tests.evaluation.world import EvaluationWorld, dataset
from tests.support.instances import catalogue

STUBS = {"track_parcel": {"answers": [{"answer": "at sea"}]}}


def agent(name: str, **more: Any) -> Mapping[str, Any]:
    return {"type": name, "description": "Ships.", "instructions": "Ship.", "model": {"script": "sdr"}, **more}


@pytest.mark.parametrize("page", [2000, 3])
async def test_the_calls_of_the_last_run_count_however_many_runs_came_before_it(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("retain.evaluation.case_run.EVENTS_PER_PAGE", page)
    earlier = 10 if page > 10 else 1
    with closing(EvaluationWorld(catalogue(agent("clerk", tools=["track_parcel"])))) as world:
        turns = [calls(*[("track_parcel", {"order": f"AB-{number}"}) for number in range(8)]), says("Found.")]
        model = SteppedChat(*turns * (earlier * earlier + earlier + 1))
        world._chat = lambda definition: model
        case = {
            "id": "c",
            "input": "Where are they?",
            "tools": STUBS,
            "earlier": ["And before?"] * earlier,
            "conversations": [{"inputs": ["Hello."] * earlier}] * earlier,
            "expected": {"calls": {"order": "exact", "calls": [{"tool": "track_parcel"}] * 8}},
        }
        assert outcomes(await world.evaluated(dataset(case, agent="clerk"))) == {"c": "passed"}


@pytest.mark.parametrize("letter", ["w", "é", '"', "\U0001f600"])
async def test_the_calls_of_a_delegate_count_however_long_its_answer_is(letter: str) -> None:
    agents = catalogue(agent("lead", delegates=["clerk"]), agent("clerk", tools=["track_parcel"]))
    with closing(EvaluationWorld(agents)) as world:
        answer = letter * 40_000
        models = {
            "lead": SteppedChat(calls(("delegate", {"agent": "clerk", "input": "Look."})), says("Done.")),
            "clerk": SteppedChat(calls(("track_parcel", {"order": "AB-1"})), says(answer)),
        }
        world._chat = lambda definition: models[definition.type]
        wanted = [{"tool": "delegate"}, {"tool": "track_parcel", "agent": "clerk"}]
        case = {"id": "c", "input": "Look.", "tools": STUBS, "expected": {"calls": {"calls": wanted}}}
        assert outcomes(await world.evaluated(dataset(case, agent="lead"))) == {"c": "passed"}
        content = models["lead"].requests[1].messages[-1].content
        read = json.loads(content)
        assert read["status"] == "completed"
        assert read["output"].endswith(" [cut]")
        assert answer.startswith(read["output"].removesuffix(" [cut]"))
        assert MAX_RESULT_BYTES - 20 < len(content) <= MAX_RESULT_BYTES
