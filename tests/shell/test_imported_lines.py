"""What an import over HTTP may bring: no model that the tenant may not name, and no value that is sealed for others."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from retain.agents.versions.version import digest_of_text
from tests.admin.access_team import Team
from tests.shell.access import guarded_worker, token
from tests.shell.test_application_keys import Application, made
from tests.shell.worker import Answer, Worker

IMPORT = "/v1/tenants/acme/import"
ALLOWED = {"provider": "anthropic", "name": "small"}
REFUSED = {"provider": "anthropic", "name": "large"}


@pytest.fixture
async def worker(team: Team, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Worker]:
    more = {"APPLICATION_KEYS": "true", "AGENT_MODELS": "anthropic/small"}
    async with guarded_worker(team, monkeypatch, ("acme", "other"), **more) as served:
        yield served


@pytest.fixture
async def application(worker: Worker, team: Team) -> Application:
    return await made(worker, team, "admin")


def agent_line(definition: str | None, digest: str = "forged") -> bytes:
    row = {"agent_type": "mine", "version": 1, "definition": definition, "digest": digest, "restored_from": None}
    dated = {**row, "created_by": "person:ann@example.com", "created_at_ms": 7}
    line = {"kind": "agent", "version": 1, "tenant": "acme", "owner": None, "at_ms": 7, "row": dated}
    return json.dumps(line).encode()


def definition_of(**more: Any) -> str:
    return json.dumps({"type": "mine", "description": "d", "instructions": "i", **more})


async def imported(application: Application, body: bytes) -> Answer:
    return await application.worker.request("POST", IMPORT, headers=application.headers, body=body)


@pytest.mark.parametrize(
    "definition",
    [
        definition_of(model=REFUSED),
        definition_of(limits={"max_turns": -1}),
        definition_of(type="another"),
        "[]",
        "",
    ],
    ids=["a model", "a limit", "another type", "no object", "nothing"],
)
async def test_an_import_brings_no_agent_that_the_tenant_may_not_define(
    application: Application, definition: str
) -> None:
    refused = await imported(application, agent_line(definition))
    assert (refused.status, refused.content["code"], refused.content["line"]) == (400, "invalid_line", 1)
    assert (await application.asks("GET", "/v1/tenants/acme/agents/mine")).status == 404


@pytest.mark.parametrize(
    ("kind", "row"),
    [
        (
            "dataset",
            {"version": "1", "definition": "{}", "cases": 1, "current": 1, "created_at_ms": 7, "updated_at_ms": 7},
        ),
        ("case", {"version": "1", "position": 0, "content": '{"id": 5}'}),
    ],
)
async def test_an_import_brings_no_dataset_that_no_evaluation_could_read(
    application: Application, kind: str, row: dict[str, Any]
) -> None:
    line = {"kind": kind, "version": 1, "tenant": "acme", "owner": None, "at_ms": 7, "row": {"name": "d", **row}}
    refused = await imported(application, json.dumps(line).encode())
    assert (refused.status, refused.content["code"], refused.content["line"]) == (400, "invalid_line", 1)
    [problem] = refused.content["problems"]
    assert problem.endswith(f"is not valid in a {kind}")


async def test_an_imported_version_has_the_digest_of_its_definition(application: Application) -> None:
    definition = definition_of(model=ALLOWED)
    assert (await imported(application, agent_line(definition))).content["rows"] == 1
    shown = (await application.asks("GET", "/v1/tenants/acme/agents/mine")).content
    assert shown["digest"] == digest_of_text(definition)
    assert (await imported(application, agent_line(None))).content["rows"] == 0


async def test_a_run_asks_no_model_that_the_tenant_may_no_longer_name(worker: Worker, team: Team) -> None:
    application = await made(worker, team, "admin")
    content = {"description": "d", "instructions": "i", "model": ALLOWED}
    assert (await application.asks("PUT", "/v1/tenants/acme/agents/mine", content)).status == 201
    worker.env.AGENT_MODELS = ""
    worker.restart()
    run = await application.asks("POST", "/v1/agents/acme/mine/run", {"input": "hello"})
    assert (run.content["status"], run.content["error"]["code"]) == ("failed", "invalid_agent")
    content["model"] = {"provider": "scripted", "script": "support"}
    assert (await application.asks("PUT", "/v1/tenants/acme/agents/mine", content)).status == 200
    place = "/v1/agents/acme/mine/run"
    again = await application.asks("POST", place, {"input": "hello", "instance_id": run.content["instance_id"]})
    assert again.content["status"] == "completed"


async def sealed_line(worker: Worker, team: Team) -> bytes:
    """Return the line of an item of the tenant `other`, as its export has it."""
    item = "/admin/tenants/other/items/shop/s-1/preferences/p"
    value = {"value": json.dumps({"email": "ann@shop.example"})}
    assert (await worker.request("PUT", item, value, headers=token(team))).status == 200
    cursor = "items."
    page = await worker.request("GET", f"/admin/tenants/other/export?cursor={cursor}", headers=token(team))
    [line] = [line for line in page.body.splitlines() if b'"sealed":true' in line]
    assert b"ann@shop" not in line
    return line


async def test_invariant_3_a_value_that_is_sealed_for_another_tenant_is_opened_for_its_owner_alone(
    worker: Worker, team: Team, application: Application
) -> None:
    line = await sealed_line(worker, team)
    refused = await imported(application, line)
    assert (refused.status, refused.content["code"]) == (403, "role_required")
    place = "/v1/tenants/acme/items/shop/s-1/preferences/p"
    assert (await application.asks("GET", place)).status == 404
    owner = await worker.request("POST", IMPORT, headers=token(team), body=line)
    assert (owner.status, owner.content["items"]) == (200, 1)
    assert "ann@shop.example" in (await application.asks("GET", place)).content["value"]
