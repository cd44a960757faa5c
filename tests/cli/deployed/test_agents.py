"""`retain agents` with an agent of the tenant: what it sends, what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest

from retain.cli.deployed import agents
from tests.cli.answering import Run, Server

PATH = "/admin/tenants/acme/agents/support"
VERSION = {
    "agent_type": "support", "version": 2, "digest": "8f14e45fceea167a", "deleted": False, "restored_from": None,
    "created_by": "email:ann@example.com", "created_at_ms": 1_700_000_000_000,
}  # fmt: skip
LINE = "support  2  2023-11-14 22:13:20Z  email:ann@example.com"
DEFINED = {**VERSION, "definition": {"description": "Helps.\x1b"}, "added": True, "warnings": []}
VALID = {"valid": True, "problems": [], "warnings": [], "digest": "8f14e45fceea167a"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "support.yaml"
    path.write_text("description: Helps.\ninstructions: Be brief.\n")
    return path


def test_a_file_is_checked_and_put_with_the_version_that_must_be_current(server: Server, run: Run, file: Path) -> None:
    warned = {**DEFINED, "warnings": [{"pointer": "/tools/0", "message": "is not there"}]}
    server.answers = {f"{PATH}/check": [(200, VALID)] * 2, PATH: [(201, warned), (200, {**DEFINED, "added": False})]}
    assert run(agents.main, "put", str(file), "--if-match", "0") == (0, f"{LINE}\n", "warning: /tools/0 is not there\n")
    definition = {"description": "Helps.", "instructions": "Be brief."}
    assert [(one.method, json.loads(one.content)) for one in server.asked] == [
        ("POST", definition),
        ("PUT", definition),
    ]
    assert server.asked[1].headers["if-match"] == '"0"'
    assert run(agents.main, "put", str(file)) == (0, f"{LINE}  nothing changed\n", "")
    assert "if-match" not in server.asked[3].headers


def test_the_type_is_that_of_the_option_else_of_the_file(server: Server, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "any.json"
    path.write_text('{"type": "support"}')
    other = PATH.replace("support", "other")
    server.answers = {f"{one}/check": [(200, VALID)] for one in (PATH, other)}
    server.answers |= {one: [(201, DEFINED)] for one in (PATH, other)}
    assert run(agents.main, "put", str(path))[0] == 0
    assert run(agents.main, "put", str(path), "--agent", "other")[0] == 0


def test_what_is_wrong_in_a_file_is_printed_and_nothing_is_put(server: Server, run: Run, file: Path) -> None:
    problem = {"pointer": "/functions/0", "message": "names pay"}
    server.answers[f"{PATH}/check"] = [(200, {**VALID, "valid": False, "problems": [problem]})]
    assert run(agents.main, "put", str(file)) == (1, "", "/functions/0: names pay\n")
    assert [one.method for one in server.asked] == ["POST"]


@pytest.mark.parametrize("text", ["- a", "a: [", "a: 2024-01-01", "a: .nan", 'a: "\\ud800"'])
def test_what_is_not_a_definition_is_not_sent(server: Server, run: Run, file: Path, text: str) -> None:
    file.write_text(text)
    status, printed, errors = run(agents.main, "put", str(file))
    assert (status, printed, server.asked) == (2, "", [])
    assert "support.yaml" in errors
    assert run(agents.main, "put", str(file.with_name("absent.yaml")))[0] == 2


def test_an_agent_and_one_of_its_versions_are_shown(server: Server, run: Run) -> None:
    server.answers = {PATH: [(200, DEFINED)] * 2, f"{PATH}/versions/1": [(200, DEFINED)]}
    status, printed, _ = run(agents.main, "show", "support")
    assert (status, printed) == (0, f'{LINE}\n{{\n  "description": "Helps.\\u001b"\n}}\n')
    assert json.loads(run(agents.main, "show", "support", "--json")[1]) == DEFINED
    assert run(agents.main, "show", "support", "--version", "1")[0] == 0
    nothing = dict.fromkeys(("version", "restored_from", "created_by", "created_at_ms", "definition"))
    server.answers[PATH] = [(200, {"agent_type": "support", "source": "repository", **nothing})]
    assert run(agents.main, "show", "support") == (0, "support  of the repository\n", "")


def test_versions_are_listed_and_one_is_had_again(server: Server, run: Run) -> None:
    gone, restored = {**VERSION, "deleted": True}, {**DEFINED, "restored_from": 1}
    server.answers[f"{PATH}/versions"] = [
        (200, {"versions": [gone], "cursor": "2"}),
        (200, {"versions": [VERSION], "cursor": None}),
    ]
    assert run(agents.main, "versions", "support") == (0, f"{LINE}  deleted\n{LINE}\n", "")
    server.answers[f"{PATH}/rollback"] = [(200, restored)]
    assert run(agents.main, "rollback", "support", "1", "--if-match", "7") == (0, f"{LINE}  as 1\n", "")
    assert (json.loads(server.asked[-1].content), server.asked[-1].headers["if-match"]) == ({"version": 1}, '"7"')


def test_an_agent_is_deleted_unless_another_change_was_first(server: Server, run: Run) -> None:
    refused = {"code": "agent_changed", "detail": "the agent was changed"}
    server.answers[PATH] = [(409, refused), httpx.Response(204)]
    assert run(agents.main, "delete", "support", "--if-match", "1") == (
        1,
        "",
        "the agent was changed (agent_changed)\n",
    )
    assert run(agents.main, "delete", "support") == (0, "support was deleted; its versions are kept\n", "")
    assert [one.method for one in server.asked] == ["DELETE", "DELETE"]
