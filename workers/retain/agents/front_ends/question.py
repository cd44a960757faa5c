"""What a person is asked: by a run itself, or by the delegate for which it waits, at any level."""

from __future__ import annotations

from dataclasses import dataclass

from retain.agents.calls.client import InstanceClient
from retain.agents.calls.report import ApprovalAwaited, DelegateAwaited, RunReport, RunResult
from retain.agents.calls.requests import AnswerRequest
from retain.agents.identity import instance_of
from retain.errors import NotFound


@dataclass(frozen=True, slots=True)
class Question:
    """A call that a person has to approve. asker, run_id: the instance and the run that ask, and take the answer.

    delegated: whether that is a delegate of the run that was asked for.
    """

    asker: InstanceClient
    run_id: str
    asked: ApprovalAwaited
    delegated: bool = False

    @property
    def key(self) -> str:
        """What names the question among all those of the run that was asked for and of its delegates."""
        return f"{self.run_id}.{self.asked.call}" if self.delegated else self.asked.call

    @property
    def call(self) -> str:
        """The call in words: the tool, and the agent if it is a delegate."""
        return f"{self.asked.tool} by {self.asker.identity.agent_type}" if self.delegated else self.asked.tool

    def answered(self, approved: bool, by: str, reason: str | None) -> AnswerRequest:
        """Return the answer that the asker takes."""
        return AnswerRequest(self.run_id, self.asked.call, approved, by, reason)


async def question_of(instance: InstanceClient, report: RunReport) -> Question | None:
    """Return what an instance's run waits for a person to answer, None when it waits for nobody. Raises: Unavailable."""
    delegated = False
    while not isinstance(report, RunResult):
        awaited = report.awaited
        if isinstance(awaited, ApprovalAwaited):
            return Question(instance, report.run_id, awaited, delegated)
        if not isinstance(awaited, DelegateAwaited):
            return None
        other = awaited.run
        identity = instance_of(instance.identity.scope.tenant_id, other.agent_type, other.instance_id)
        instance, delegated = InstanceClient(instance.instances, identity), True
        try:
            report = await instance.show(other.run_id)
        except NotFound:  # it was removed, which its caller learns when it checks on it
            return None
    return None
