"""Provisioning with the real wrangler, whose account is a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cloudflare_account import Account, account
from vectorize.provision import Existing, apply, plan, run_wrangler
from vectorize.specification import read_specification

pytestmark = pytest.mark.workerd

SPECIFIED = read_specification()
INDEX = {
    "name": SPECIFIED.name,
    "config": {"dimensions": SPECIFIED.dimensions, "metric": SPECIFIED.metric},
    "description": "",
    "created_on": "2026-11-22T00:00:00.000000Z",
    "modified_on": "2026-11-22T00:00:00.000000Z",
}


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with account() as made:
        for name, value in made.environment(tmp_path).items():
            monkeypatch.setenv(name, value)
        yield made


def test_the_index_is_created_with_its_dimensions_and_metric(served: Account) -> None:
    run_wrangler(plan(SPECIFIED, Existing())[0])
    [(method, path, content)] = served.sent
    assert (method, path) == ("POST", "/vectorize/v2/indexes")
    assert isinstance(content, dict)
    assert (content["name"], content["config"]) == (
        SPECIFIED.name,
        {"dimensions": SPECIFIED.dimensions, "metric": SPECIFIED.metric},
    )


def test_the_account_is_read_and_a_missing_metadata_index_created(served: Account) -> None:
    *present, missing = SPECIFIED.metadata_indexes
    served.results["/vectorize/v2/indexes"] = [INDEX]
    served.results[f"/vectorize/v2/indexes/{SPECIFIED.name}/metadata_index/list"] = {
        "metadataIndexes": [{"propertyName": one.property, "indexType": one.type} for one in present]
    }
    reported: list[object] = []
    apply(SPECIFIED, run_wrangler, reported.append)
    assert served.sent == [
        (
            "POST",
            f"/vectorize/v2/indexes/{SPECIFIED.name}/metadata_index/create",
            {"propertyName": missing.property, "indexType": missing.type},
        )
    ]
    assert len(reported) == 2, "the command, and the advice to reindex"
