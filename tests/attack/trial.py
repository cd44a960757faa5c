"""A trial: rounds of attempts, each round against a deployment of its own, and what was found."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import get_args

from retain.errors.codes import Code
from retain.json_text import read_json
from tests.attack.attempts import Attacker, Attempt
from tests.attack.host import MAX_STEPS, Target, target
from tests.attack.known import ULID
from tests.attack.tenants import ATTACKER, MEMBERS, Answer

ROUND = 2_500
"""Attempts against one deployment."""
MAX_CALLS = 1_000
"""Most calls of bindings that one attempt may cause. Source: https://developers.cloudflare.com/workers/platform/limits/#subrequests"""
_REFUSED = (400, 401, 403, 405, 413, 415)


def _flat(union: object) -> frozenset[str]:
    """Return every text of a union of literals."""
    parts = get_args(union)
    return frozenset().union(*map(_flat, parts)) if parts else frozenset({union} if isinstance(union, str) else ())


CODES = _flat(Code)


@dataclass
class Summary:
    """What a trial did. findings: what is wrong, each with the seed of its round."""

    seed: int
    attempts: int = 0
    valid: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    routes: Counter[str] = field(default_factory=Counter)
    valid_of: Counter[str] = field(default_factory=Counter)
    most_calls: tuple[int, str] = (0, "")
    most_steps: tuple[int, str] = (0, "")
    rows: int = 0
    seconds: float = 0.0
    findings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        share = 100 * self.valid / max(1, self.attempts)
        lines = [
            f"attack: seed {self.seed}, {self.attempts} attempts on {len(self.routes)} routes in {self.seconds:.0f} s,"
            f" {share:.0f} % passed validation",
            "answers: " + ", ".join(f"{status}: {count}" for status, count in sorted(self.statuses.items())),
            f"most work: {self.most_calls[0]} calls of bindings ({self.most_calls[1]}),"
            f" {self.most_steps[0]:,} steps of SQLite ({self.most_steps[1] or 'none'})",
            f"rows of the victim compared: {self.rows}; findings: {len(self.findings)}",
        ]
        return "\n".join([*lines, *(f"  {finding}" for finding in self.findings[:20])])


async def attack(attempts: int, seed: int, *, stop_at_first: bool = False, deadline: float = math.inf) -> Summary:
    """Attack with so many attempts, or until a time (`time.monotonic`). Each round has the next seed."""
    summary = Summary(seed)
    begun = time.monotonic()
    while summary.attempts < attempts and time.monotonic() < deadline and not (stop_at_first and summary.findings):
        size = min(ROUND, attempts - summary.attempts)
        await _round(summary, seed, size, stop_at_first=stop_at_first)
        seed += 1
    summary.seconds = time.monotonic() - begun
    return summary


async def _round(summary: Summary, seed: int, size: int, *, stop_at_first: bool) -> None:
    rng = Random(seed)
    async with target(rng) as attacked:
        evidence = await attacked.prepare()
        attacked.calls()
        attacker = Attacker(
            rng,
            attacked.mine,
            attacked.theirs,
            api_key=attacked.keys[ATTACKER],
            token=attacked.token(MEMBERS[ATTACKER]),
            applications=attacked.applications,
        )
        for number in range(size):
            attempt = attacker.attempt()
            await _try(summary, attacked, attempt, f"seed {seed}, attempt {number}: {attempt}")
            if stop_at_first and (summary.findings or (number % 100 == 99 and evidence.changes(attacked.rows()))):
                break
        await attacked.worker.settled()
        summary.rows += sum(len(rows) for rows in evidence.rows.values())
        changes = evidence.changes(attacked.rows())
        summary.findings += [f"seed {seed}, after {number + 1} attempts: {change}" for change in changes]


async def _try(summary: Summary, attacked: Target, attempt: Attempt, named: str) -> None:
    assert attacked.canary.encode() not in (attempt.body or b"") + attempt.path.encode(), "the attacker knows a canary"
    attacked.steps = 0
    answer = await attacked.worker.request(attempt.method, attempt.path, headers=attempt.headers, body=attempt.body)
    await attacked.worker.settled()
    calls = attacked.calls()
    summary.attempts += 1
    summary.statuses[answer.status] += 1
    summary.routes[attempt.route] += 1
    if answer.status not in _REFUSED and not is_unknown_route(answer):
        summary.valid += 1
        summary.valid_of[attempt.route] += 1
    summary.most_calls = max(summary.most_calls, (calls, attempt.route))
    summary.most_steps = max(summary.most_steps, (attacked.steps, attempt.route))
    wrong = wrongs(answer, attacked.canary, attacked.theirs.hidden)
    wrong += [f"the victim's words reached {where}" for where in attacked.leaks]
    attacked.leaks.clear()
    if calls > MAX_CALLS or attacked.steps > MAX_STEPS:
        wrong.append(f"{calls} calls of bindings, {attacked.steps} steps of SQLite")
    summary.findings += [f"{named}: {one}" for one in wrong]
    if answer.status < 300:
        attacked.mine.learn(attempt.path, answer.body)


def is_unknown_route(answer: Answer) -> bool:
    """Return whether the path of the request is of no route."""
    return answer.status == 404 and b'"no_such_route"' in answer.body


def wrongs(answer: Answer, canary: str, hidden: frozenset[str]) -> list[str]:
    """Return what is wrong with an answer to the attacker."""
    found = []
    text = answer.body.decode("utf-8", "replace")
    shown = text + "".join(map(str, answer.headers.values()))
    if canary in shown.lower():
        found.append(f"the answer has a word of the victim: {_around(shown, canary)}")
    ids = hidden & set(ULID.findall(text))
    if ids:
        found.append(f"the answer has an id of the victim that the attacker does not know: {min(ids)}")
    if answer.status >= 500 and answer.status != 507:
        found.append(f"status {answer.status}: {text[:300]}")
    if answer.status >= 400:
        code = _code(text)
        if code not in CODES:
            found.append(f"status {answer.status} with the code {code!r}: {text[:300]}")
    return found


def _code(text: str) -> object:
    try:
        content = read_json(text)
    except ValueError:
        return None
    if isinstance(content, dict) and "errors" in content:  # the envelope of Cloudflare's API
        return content["errors"][0]["reason"]
    if isinstance(content, dict) and "error" in content:  # a message of the Model Context Protocol, or OpenAI's error
        code = content["error"].get("code")
        return "unknown_agent" if code == "model_not_found" else code if isinstance(code, str) else "forbidden"
    return content.get("code") if isinstance(content, dict) else None


def _around(text: str, word: str) -> str:
    at = text.lower().index(word)
    return text[max(0, at - 100) : at + 60]


def least_valid(summary: Summary) -> Sequence[str]:
    """Return the routes on which fewer than a tenth of the attempts passed validation."""
    return [
        f"{route}: {summary.valid_of[route]} of {count}"
        for route, count in sorted(summary.routes.items())
        if summary.valid_of[route] * 10 < count
    ]


__all__ = ["CODES", "Summary", "attack", "least_valid", "wrongs"]
