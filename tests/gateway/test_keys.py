from __future__ import annotations

import hashlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput, Unauthenticated
from retain.gateway.entries import Entries
from retain.gateway.keys import Grant, authenticate, presented_key, read_grant, write_grant
from retain.gateway.provisioning import MAX_LIFETIME_MS, new_api_key
from retain.host.clock import ManualClock
from tests.gateway.setting import CountingKv

NOW_MS = 1_700_000_000_000


def test_a_key_names_its_tenant_and_holds_32_random_bytes() -> None:
    made = [new_api_key("acme-1", ["*"], now_ms=NOW_MS).api_key for _ in range(50)]
    assert all(re.fullmatch(r"retain_acme-1_[A-Za-z0-9_-]{43}", key) for key in made)
    assert len(set(made)) == 50


def test_kv_holds_the_hash_of_a_key_and_not_the_key() -> None:
    new = new_api_key("acme", ["create_order"], now_ms=NOW_MS, lifetime_ms=5)
    digest = hashlib.sha256(new.api_key.encode()).hexdigest()
    assert new.entry.key == f"gateway_key:{digest}"
    assert digest.startswith(new.key_id)
    assert new.api_key.removeprefix("retain_acme_") not in new.entry.value
    assert json.loads(new.entry.value) == {
        "tenant_id": "acme",
        "key_id": new.key_id,
        "scopes": ["create_order"],
        "created_at_ms": NOW_MS,
        "expires_at_ms": NOW_MS + 5,
    }


def test_a_new_key_does_not_show_itself() -> None:
    new = new_api_key("acme", ["*"], now_ms=NOW_MS)
    assert new.api_key not in repr(new)


@pytest.mark.parametrize(
    ("tenant", "scopes", "lifetime_ms", "code"),
    [
        pytest.param("acme", [], None, "invalid_scopes", id="no scope"),
        pytest.param("acme", ["a*"], None, "invalid_tool_name", id="a pattern as a scope"),
        pytest.param("*", ["*"], None, "invalid_tenant", id="every tenant"),
        pytest.param("", ["*"], None, "invalid_tenant", id="no tenant"),
        pytest.param("acme:x", ["*"], None, "invalid_tenant", id="a delimiter in the tenant"),
        pytest.param("acme", ["*"], 0, "invalid_lifetime", id="no lifetime"),
    ],
)
def test_a_key_that_would_allow_too_much_or_nothing_is_not_made(
    tenant: str, scopes: list[str], lifetime_ms: int | None, code: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        new_api_key(tenant, scopes, now_ms=NOW_MS, lifetime_ms=lifetime_ms)
    assert refused.value.code == code


def test_a_key_lives_for_ten_years_at_most() -> None:
    longest = new_api_key("acme", ["*"], now_ms=NOW_MS, lifetime_ms=MAX_LIFETIME_MS)
    assert json.loads(longest.entry.value)["expires_at_ms"] == NOW_MS + MAX_LIFETIME_MS
    with pytest.raises(InvalidInput) as refused:
        new_api_key("acme", ["*"], now_ms=NOW_MS, lifetime_ms=MAX_LIFETIME_MS + 1)
    assert refused.value.code == "invalid_lifetime"


@given(
    st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True),
    st.text(),
    st.lists(st.text()),
    st.integers(),
    st.none() | st.integers(),
)
def test_a_grant_reads_back_as_it_was_written(
    tenant: str, key_id: str, scopes: list[str], created_at_ms: int, expires_at_ms: int | None
) -> None:
    grant = Grant(tenant, key_id, tuple(scopes), created_at_ms, expires_at_ms)
    assert read_grant(write_grant(grant)) == grant


async def test_a_key_works_until_the_millisecond_it_expires() -> None:
    clock = ManualClock(NOW_MS)
    kv = CountingKv(clock)
    new = new_api_key("acme", ["*"], now_ms=NOW_MS, lifetime_ms=100)
    await new.entry.write(kv)
    for kept_ms in (0, 5_000):
        entries = Entries(kv, clock, kept_ms)
        assert (await authenticate(entries, new.api_key, NOW_MS + 99, None))[0].tenant_id == "acme"
        with pytest.raises(Unauthenticated):
            await authenticate(entries, new.api_key, NOW_MS + 100, None)


async def test_authenticating_reads_kv_each_time_where_nothing_is_kept() -> None:
    kv = CountingKv(ManualClock(NOW_MS))
    new = new_api_key("acme", ["*"], now_ms=NOW_MS)
    await new.entry.write(kv)
    entries = Entries(kv, ManualClock(NOW_MS), 0)
    for _ in range(3):
        await authenticate(entries, new.api_key, NOW_MS, None)
    assert kv.reads == [new.entry.key] * 3


@pytest.mark.parametrize(
    ("headers", "key"),
    [
        pytest.param({"authorization": "Bearer a"}, "a", id="bearer"),
        pytest.param({"authorization": "bearer  a "}, "a", id="another case, more spaces"),
        pytest.param({"x-api-key": "b"}, "b", id="its own header"),
        pytest.param({"authorization": "Bearer a", "x-api-key": "b"}, "a", id="both"),
        pytest.param({"authorization": "Basic a", "x-api-key": "b"}, "b", id="another scheme next to it"),
    ],
)
def test_a_key_is_presented_in_either_header(headers: dict[str, str], key: str) -> None:
    assert presented_key(headers) == key
