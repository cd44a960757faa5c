"""The execution of a case in its scratch tenant: fixtures, runs or recall, and what was observed."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import ApprovalAwaited, RunResult, RunStanding
from retain.agents.calls.run_request import RunInput, RunRequest
from retain.agents.identity import instance_of
from retain.errors import UpstreamFailed
from retain.evaluation.dataset import Case, CaseUser, Fixture, RecallTarget, Target
from retain.evaluation.scoring.scores import Called, Observation
from retain.evaluation.scratch import Scratch, Scratches
from retain.json_text import JsonObject, read_json, read_own_json
from retain.memory.records.record import RecordSource
from retain.memory.scope import Scope
from retain.memory.semantic import RecallQuery, SemanticMemory
from retain.models.retry import Sleep
from retain.ports import AgentInstances, Row, Sql
from retain.tenants.attribution import acting_principal

LOOKS_S = (0.05, 0.1, 0.2, *[0.4] * 12)
"""How long to wait before each further query for a case's runs in D1, where instances write them."""
EVENTS_PER_PAGE = 2000
"""Events that one statement reads."""

_RUNS = "SELECT * FROM agent_runs WHERE tenant_id = ? ORDER BY run_id"
_DELEGATED = """
SELECT event.run_id, event.data ->> '$.content' AS answer FROM timelines t
CROSS JOIN run_events event ON event.run_id = t.run_id
WHERE t.tenant_id = ? AND event.kind = 'tool_answered' AND event.data ->> '$.name' = 'delegate' ORDER BY t.run_id, event.seq
"""
# The model's answers and what tools answer are not scored; of a delegate's answer the run is followed.
_CALLS = """
SELECT event.run_id, event.seq, event.kind, CASE event.data ->> '$.name' WHEN 'delegate' THEN event.data
  ELSE json_remove(event.data, '$.content', '$.summary', '$.traceback') END AS data
FROM json_each(?1) run CROSS JOIN run_events event ON event.run_id = run.value
WHERE event.kind IN ('tool_called', 'tool_answered') AND (event.run_id, event.seq) > (?2, ?3)
ORDER BY event.run_id, event.seq LIMIT ?4
"""
_PERSON = RecordSource("person")


@dataclass(frozen=True, slots=True)
class CasePorts:
    """What cases are executed with. house_of: the house of a tenant's agent. semantic: returns the memory of a scope."""

    sql: Sql
    instances: AgentInstances
    semantic: Callable[[Scope], SemanticMemory]
    house_of: Callable[[str, str], Awaitable[str | None]]
    sleep: Sleep


class CaseRun:
    """Executes one case. Everything can be repeated: it reaches the same fixtures and runs."""

    def __init__(self, ports: CasePorts, scratches: Scratches, scratch: Scratch, target: Target) -> None:
        self._ports = ports
        self._scratches = scratches
        self._scratch = scratch
        self._target = target

    async def observe(self, case: Case) -> Observation | None:
        """Return what was observed of the case, None while it is under way.

        Raises: UpstreamFailed (code `run_failed`) for a run that ended without an answer, (code `run_waits`) for one that
            waits for an approval; NotFound for an agent that does not exist; as the memory and the instances.
        """
        records = self._scratch.records
        if records is None:
            records = await self._seed(case.memories)
            await self._scratches.seeded(self._scratch.scratch_id, records)
        if self._target.recall is not None:
            return await self._recall(self._target.recall, str(case.input), records)
        assert self._target.agent is not None
        return await self._run(self._target.agent, case, records)

    async def _seed(self, memories: Sequence[Fixture]) -> dict[str, str]:
        """Store the fixtures; return the fixtures' ids by the ids of their records."""
        by_scope: dict[Scope, list[Fixture]] = {}
        for memory in memories:
            by_scope.setdefault(await self._scope_of(memory), []).append(memory)
        records: dict[str, str] = {}
        for scope, fixtures in by_scope.items():
            stored = await self._ports.semantic(scope).store_all([one.record() for one in fixtures], _PERSON)
            records.update({result.id: one.id for result, one in zip(stored, fixtures, strict=True)})
        return records

    async def _scope_of(self, memory: Fixture) -> Scope:
        return replace(await self._outer_scope_of(memory), user_id=memory.user_id)

    async def _outer_scope_of(self, memory: Fixture) -> Scope:
        if memory.tenant_wide:
            return Scope(self._scratch.scratch_id)
        if memory.house is not None:
            return Scope(self._scratch.scratch_id, None, memory.house)
        if memory.agent_type is not None:
            return await self._agent_scope(memory.agent_type)
        return await self._target_scope()

    async def _target_scope(self) -> Scope:
        recall = self._target.recall
        agent = self._target.agent if recall is None else recall.agent_type
        if agent is not None:
            return await self._agent_scope(agent)
        return Scope(self._scratch.scratch_id, None, recall.house if recall else None)

    async def _agent_scope(self, agent_type: str) -> Scope:
        house = await self._ports.house_of(self._scratch.tenant_id, agent_type)
        return Scope(self._scratch.scratch_id, agent_type, house)

    async def _recall(self, target: RecallTarget, query: str, records: Mapping[str, str]) -> Observation:
        everywhere = target.agent_type is None and target.house is None
        wanted = RecallQuery(query, target.top_k, filter=target.filter, below=everywhere)
        hits = await self._ports.semantic(await self._target_scope()).search(wanted)
        found = [{"id": records.get(hit.record.id, hit.record.id), "score": round(hit.score, 6)} for hit in hits]
        return Observation(
            "\n".join(hit.record.content for hit in hits),
            retrieved=tuple(str(memory["id"]) for memory in found),
            details={"memories": found},
        )

    async def _run(self, agent: str, case: Case, records: Mapping[str, str]) -> Observation | None:
        results: list[RunResult] = []
        for number, before in enumerate(case.conversations):
            ended = await self._converse(agent, f"before-{number}", before.user, before.inputs, {})
            if ended is None or await self._recorded(ended) is None:
                return None
            results += ended
        ended = await self._converse(agent, "case", case.user, [*case.earlier, case.input], case.metadata)
        if ended is None:
            return None
        results += ended
        recorded = await self._recorded(results)
        if recorded is None:
            return None
        rows, runs = recorded
        return _observation(agent, results[-1], rows, await self._traces(runs), records)

    async def _converse(
        self, agent: str, name: str, user: CaseUser | None, inputs: Sequence[RunInput], metadata: JsonObject
    ) -> list[RunResult] | None:
        """Give the inputs to an instance, in order; return the results, None while a run is under way."""
        tenant_id = self._scratch.scratch_id
        instance = InstanceClient(self._ports.instances, instance_of(tenant_id, agent, name))
        results: list[RunResult] = []
        for number, given in enumerate(inputs):
            key = f"{tenant_id}.{number}"
            request = RunRequest(
                given,
                metadata,
                idempotency_key=key,
                user=None if user is None else user.to_user(),
                by=acting_principal(),
            )
            report = await instance.run(request)
            if isinstance(report, RunStanding):
                if isinstance(report.awaited, ApprovalAwaited):
                    raise UpstreamFailed(f"the run waits for the approval of {report.awaited.tool}", code="run_waits")
                return None
            if report.status != "completed":
                why = report.status if report.error is None else f"{report.error.code}: {report.error.message}"
                raise UpstreamFailed(f"the run ended without an answer: {why}", code="run_failed")
            results.append(report)
        return results

    async def _recorded(self, results: Sequence[RunResult]) -> tuple[dict[str, Row], list[str]] | None:
        """Return the runs as D1 recorded them, and the ids of the last one and those that it delegated, directly or not.

        None while D1 does not have everything, or facts are still learned. Everything must arrive in D1 before the scratch
        tenant is erased: the erasure would not find what arrives later.
        """
        tenant_id = self._scratch.scratch_id
        for wait_s in (0.0, *LOOKS_S):
            if wait_s:
                await self._ports.sleep(wait_s)
            runs, answers = await self._ports.sql.batch([(_RUNS, (tenant_id,)), (_DELEGATED, (tenant_id,))])
            rows = {row["run_id"]: row for row in runs.rows}
            delegated = [(row["run_id"], child) for row in answers.rows if (child := _delegated(row["answer"]))]
            wanted = {result.run_id for result in results} | {child for _, child in delegated}
            if all(run_id in rows and _has_ended(rows[run_id]) for run_id in wanted):
                return rows, _with_delegates(results[-1].run_id, delegated)
        return None

    async def _traces(self, runs: Sequence[str]) -> _Traces:
        """Return the tool calls of these runs, as D1 recorded them."""
        events: list[Row] = []
        after: tuple[str, int] = ("", 0)
        while True:
            page = (await self._ports.sql.run(_CALLS, json.dumps(runs), *after, EVENTS_PER_PAGE)).rows
            events += page
            if len(page) < EVENTS_PER_PAGE:
                return _traces(events)
            after = page[-1]["run_id"], int(page[-1]["seq"])


@dataclass(frozen=True, slots=True)
class _Step:
    """One tool call of a run's timeline. delegated: the run that it started."""

    tool: str
    arguments: JsonObject
    failed: bool = False
    recalled: tuple[str, ...] = ()
    delegated: str | None = None


_Traces = Mapping[str, Mapping[tuple[int, int], _Step]]


def _has_ended(run: Row) -> bool:
    learning = run["learning"]
    return run["status"] != "running" and (learning is None or read_own_json(learning)["status"] != "pending")


def _traces(events: Sequence[Row]) -> _Traces:
    """Return the tool calls of each run, in order. A resumed call counts once."""
    traces: dict[str, dict[tuple[int, int], _Step]] = {}
    for row in events:
        data = read_own_json(row["data"])
        steps = traces.setdefault(row["run_id"], {})
        if row["kind"] == "tool_called":
            steps[data["turn"], data["index"]] = _Step(data["name"], data["arguments"])
        elif row["kind"] == "tool_answered":
            position = data["turn"], data["index"]
            known = steps.get(position, _Step(data["name"], {}))
            recalled = tuple(str(record) for record, _ in data["recalled"])
            child = _delegated(data["content"]) if data["name"] == "delegate" else None
            steps[position] = _Step(known.tool, known.arguments, data["failed"], recalled, child)
    return traces


def _with_delegates(run_id: str, delegated: Sequence[tuple[str, str]]) -> list[str]:
    """Return a run and those below it. delegated: each run that was delegated, after the one that did it."""
    found = [run_id]
    for one in found:
        found += [child for parent, child in delegated if parent == one]
    return found


def _delegated(content: str) -> str | None:
    try:
        answer = read_json(content)
    except ValueError:
        return None
    return answer.get("run_id") if isinstance(answer, dict) else None


def _observation(
    agent: str, result: RunResult, rows: Mapping[str, Row], traces: _Traces, records: Mapping[str, str]
) -> Observation:
    run_id = result.run_id
    row = rows[run_id]
    given = [str(record["id"]) for record in read_own_json(row["input"]).get("records", [])]
    recalled = [record for step in traces.get(run_id, {}).values() for record in step.recalled]
    details = {
        "agent_run_id": run_id,
        "model": row["model"],
        "steps": result.steps,
        "usage": result.usage.to_json(),
        "duration_ms": int(row["completed_at_ms"]) - int(row["created_at_ms"]),
    }
    return Observation(
        result.output or "",
        tuple(_calls(agent, run_id, rows, traces)),
        tuple(records.get(record, record) for record in dict.fromkeys([*given, *recalled])),
        details,
    )


def _calls(agent: str, run_id: str, rows: Mapping[str, Row], traces: _Traces) -> list[Called]:
    found: list[Called] = []
    for step in traces.get(run_id, {}).values():
        found.append(Called(agent, step.tool, step.arguments, step.failed))
        if step.delegated is not None:
            found += _calls(str(rows[step.delegated]["agent_type"]), step.delegated, rows, traces)
    return found
