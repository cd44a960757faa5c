"""A valid token of Cloudflare Access lets its bearer in, through the whole Worker; its certificates come over real HTTP."""

from __future__ import annotations

import pytest

from retain.admin.access import MAX_TOKEN_BYTES
from tests.admin.access_team import NOW_S, Team
from tests.shell.access import token
from tests.shell.worker import Worker


async def test_a_valid_token_runs_an_agent_and_reads_its_run(guarded: Worker, team: Team) -> None:
    headers, fetched = token(team), team.requests
    assert (await guarded.request("PUT", "/admin/tenants/acme", {}, headers=headers)).status in (200, 201)
    body = {"input": "Contact contact:7 responded positively to a short case study.", "instance_id": "desk"}
    ran = await guarded.request("POST", "/v1/agents/acme/sdr/run", body, headers=headers)
    assert (ran.status, ran.content["status"]) == (200, "completed")
    await guarded.settled()
    shown = await guarded.request("GET", f"/admin/agents/acme/runs/{ran.content['run_id']}", headers=headers)
    assert (shown.status, shown.content["status"]) == (200, "completed")
    assert team.requests == fetched + 1, "the certificates are fetched once"


@pytest.mark.parametrize("claims", [{"aud": ["another"]}, {"exp": NOW_S - 61}], ids=["audience", "expired"])
async def test_a_token_that_is_signed_and_not_valid_lets_nobody_in(
    guarded: Worker, team: Team, claims: dict[str, object]
) -> None:
    answer = await guarded.request("GET", "/admin/agents/acme/runs", headers=token(team, **claims))
    assert (answer.status, answer.content["code"]) == (401, "invalid_access_token")


async def test_a_token_has_a_longest_length(guarded: Worker, team: Team) -> None:
    """One below, at and one above: base64 has no text of some lengths, so the header is longer as well."""
    for size, status in ((MAX_TOKEN_BYTES - 1, 200), (MAX_TOKEN_BYTES, 200), (MAX_TOKEN_BYTES + 1, 401)):
        answer = await guarded.request("GET", "/admin/tenants/acme/quotas", headers=_token_of(team, size))
        if status == 200:
            assert answer.content["code"] == "unknown_tenant", "the token was read"
        else:
            assert (answer.status, answer.content["code"]) == (401, "invalid_access_token")


def _token_of(team: Team, size: int) -> dict[str, str]:
    """Return the header with a valid token of this length."""
    shortest = len(token(team, note="")["cf-access-jwt-assertion"])
    for letters in range((size - shortest) * 3 // 4 - 3, (size - shortest) * 3 // 4 + 3):
        for more in ("", "x", "xx"):
            header = token(team, more, note="n" * letters)
            if len(header["cf-access-jwt-assertion"]) == size:
                return header
    raise AssertionError("there is no such token")
