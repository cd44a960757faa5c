"""What a case is scored by: runs with much to show, and a case that nobody can read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import pytest

from retain.agents.tools.built_in import MAX_RESULT_BYTES
from retain.errors import Unavailable
from retain.evaluation.dataset import Case
from retain.evaluation.datasets import Datasets
from retain.evaluation.results import summary
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


async def test_a_case_that_cannot_be_read_counts_as_0_in_every_average(monkeypatch: pytest.MonkeyPatch) -> None:
    case = {
        "id": "read",
        "input": "Customer ann@shop.example asks for a refund of order AB-1001.",
        "expected": {"matches": ["^APPROVE"]},
    }
    content = dataset(case, {**case, "id": "unread"}, agent="refund_decision", thresholds={"matches": 0.9})
    read = Datasets.case

    async def broken(self: Datasets, tenant_id: str, name: str, version: str, position: int) -> Case:
        if position == 1:
            raise Unavailable("down")
        return await read(self, tenant_id, name, version, position)

    with closing(EvaluationWorld()) as world:
        monkeypatch.setattr(Datasets, "case", broken)
        run = await world.evaluated(content)
        assert outcomes(run) == {"read": "passed", "unread": "errored"}
        shown = summary(run.results, run.definition.thresholds)
        assert (shown.averages, shown.below) == ({"pass_rate": 0.5, "matches": 0.5}, ("matches",))
