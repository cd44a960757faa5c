"""The scorer of tool-call traces: which of the expected calls were made. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retain.evaluation.expectations import ExpectedCall, ExpectedCalls
from retain.evaluation.scoring.scores import Called, Score, found, same_json


def calls(made: Sequence[Called], wanted: ExpectedCalls, agent: str) -> Score:
    """Score the calls of the agents that the expectation names. agent: who makes the expected calls that name none.

    The value is the share of the expected calls that were made, each paired with a different call: as many as can be
    paired, for `kept` and `exact` without changing the order. Unexpected calls lower it only for `exact`.
    """
    agents = {call.agent or agent for call in wanted.calls} or {agent}
    own = [call for call in made if call.agent in agents]
    fits = [[_fits(call, expected, agent) for call in own] for expected in wanted.calls]
    paired = _paired(fits) if wanted.order == "any" else _in_order(fits, len(own))
    whole = max(len(fits), len(own)) if wanted.order == "exact" else len(fits)
    value = paired / whole if whole else 1.0
    detail = None if value == 1 else f"{paired} of {len(fits)} expected calls, {len(own)} made"
    return Score("calls", value, value == 1, detail)


def fits_arguments(value: object, wanted: object, *, subset: bool) -> bool:
    """Return whether an argument matches: a pattern, an object with at least or exactly its fields, or an equal value."""
    if isinstance(wanted, Mapping) and set(wanted) == {"$matches"}:
        return isinstance(value, str) and found(str(wanted["$matches"]), value)
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        known = set(wanted) <= set(value) if subset else set(wanted) == set(value)
        return known and all(fits_arguments(value[name], part, subset=subset) for name, part in wanted.items())
    if isinstance(wanted, list) and isinstance(value, list):
        pairs = zip(value, wanted, strict=False)
        return len(value) == len(wanted) and all(fits_arguments(one, other, subset=subset) for one, other in pairs)
    return same_json(value, wanted)


def _fits(call: Called, wanted: ExpectedCall, agent: str) -> bool:
    if call.tool != wanted.tool or call.agent != (wanted.agent or agent):
        return False
    if wanted.failed is not None and call.failed != wanted.failed:
        return False
    return wanted.arguments is None or fits_arguments(call.arguments, wanted.arguments, subset=wanted.match == "subset")


def _paired(fits: Sequence[Sequence[bool]]) -> int:
    """Return how many expected calls can each be paired with a different call.

    By augmenting paths: a call that fits two expectations is paired with the one that has no alternative.
    Source: https://en.wikipedia.org/wiki/Hopcroft%E2%80%93Karp_algorithm#Augmenting_paths
    """
    taken: dict[int, int] = {}

    def pair(expected: int, tried: set[int]) -> bool:
        for call, fit in enumerate(fits[expected]):
            if fit and call not in tried:
                tried.add(call)
                if call not in taken or pair(taken[call], tried):
                    taken[call] = expected
                    return True
        return False

    return sum(pair(expected, set()) for expected in range(len(fits)))


def _in_order(fits: Sequence[Sequence[bool]], made: int) -> int:
    """Return the length of the longest common subsequence of expected and made calls.

    Source: https://en.wikipedia.org/wiki/Longest_common_subsequence
    """
    best = [0] * (made + 1)
    for row in fits:
        above = best
        best = [0]
        for call, fit in enumerate(row):
            best.append(max(above[call + 1], best[call], above[call] + fit))
    return best[-1]
