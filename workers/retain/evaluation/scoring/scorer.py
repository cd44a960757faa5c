"""The scores of a case by the scorers that its expectations name, and whether it passes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from retain.evaluation.dataset import Case
from retain.evaluation.expectations import Expected
from retain.evaluation.scoring import scores
from retain.evaluation.scoring.judge import Judge
from retain.evaluation.scoring.retrieval import retrieval
from retain.evaluation.scoring.scores import Observation, Score
from retain.evaluation.scoring.trace import calls


async def scored(case: Case, observed: Observation, agent: str, judge: Callable[[], Judge]) -> list[Score]:
    """Return every score of a case.

    agent: who makes the expected calls that name no agent. judge: called for a case that needs one. Raises: as the judge.
    """
    found = checked(case.expected, observed, agent)
    wanted = case.expected.judge
    if wanted is not None:
        asked = case.input if isinstance(case.input, str) else json.dumps(case.input, ensure_ascii=False)
        verdict = await judge().judge(asked, observed.output, wanted.criteria)
        found.append(Score("judge", verdict.score, verdict.score >= wanted.at_least, verdict.reason or None))
    return found


def checked(expected: Expected, observed: Observation, agent: str) -> list[Score]:
    """Return the scores that need no judge. Pure."""
    output = observed.output
    found: list[Score] = []
    if expected.exact is not None:
        found.append(scores.exact(output, expected.exact))
    if expected.contains:
        found.append(scores.contains(output, expected.contains))
    if expected.excludes:
        found.append(scores.excludes(output, expected.excludes))
    if expected.matches:
        found.append(scores.matches(output, expected.matches))
    if expected.output_schema is not None:
        found.append(scores.schema(output, expected.output_schema))
    if expected.calls is not None:
        found.append(calls(observed.calls, expected.calls, agent))
    if expected.memories is not None:
        found += retrieval(observed.retrieved, expected.memories)
    return found


def passes(found: Sequence[Score]) -> bool:
    """Return whether a case passes: every score with a bound reaches it."""
    return all(score.passed is not False for score in found)


def unscored(expected: Expected) -> list[Score]:
    """Return the scores of a case that could not be scored: 0 for each, so that it never raises an average."""
    return [Score(name, 0.0, False, "errored") for name in expected.metrics]
