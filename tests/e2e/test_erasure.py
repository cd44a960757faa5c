"""Erasure on the real D1: no word of erased memories is left in the blocks of its full-text index."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from tests.e2e.local_state import LocalState
from tests.e2e.servers import one_database

pytestmark = pytest.mark.workerd


@one_database
def test_an_erasure_leaves_no_word_in_the_blocks_of_the_full_text_index(
    api: httpx.Client, tenant: Callable[[], str], state: LocalState
) -> None:
    acme = tenant()
    path = f"/admin/tenants/{acme}"

    def blocks_with_the_word() -> int:
        rows = state.d1("SELECT hex(block) AS block FROM memory_text_data")
        return sum(b"ebriscanari".hex().upper() in row["block"] for row in rows)

    body = {"content": "Febriscanary is the diagnosis of patient zero", "subject": "patient zero"}
    stored = api.post(f"{path}/memories", json=body).json()
    assert api.delete(f"{path}/memories/{stored['id']}").status_code == 204
    assert blocks_with_the_word() > 0
    answer = api.post(f"{path}/erase", json={"subject": "patient zero"})
    assert (answer.status_code, answer.json()["receipt"]["state"]) == (200, "completed")
    assert blocks_with_the_word() == 0
