"""`retain history` verifies a history from a server or from a file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from retain.cli.administrator import open_client
from retain.cli.history import main
from retain.tenants.history import GENESIS
from retain.tenants.mutation_log import MutationLog
from tests.lifecycle.world import living

Rows = list[dict[str, Any]]
PATH = "/admin/tenants/acme/history"


@pytest.fixture
async def entries() -> Rows:
    with living() as world:
        for number in range(5):
            await world.store(f"Lamp {number}.")
        return [dict(row) for row in await world.stores().history().page("acme", after=0, limit=100)]


def _connected(rows: Rows, problem: str | None = None, path: str = PATH) -> Callable[[str], httpx.Client]:
    def answered(request: httpx.Request) -> httpx.Response:
        if request.url.path == f"{path}/verify":
            begun = "cursor" in request.url.params
            found = {"problem": problem, "broken_at": 3, "cursor": None} if begun else {"cursor": "2.abc"}
            return httpx.Response(200, json=found)
        if request.url.path != path:
            return httpx.Response(404, text="no such tenant")
        page = [row for row in rows if row["seq"] > int(request.url.params["after"])][:2]
        return httpx.Response(200, json={"entries": page, "cursor": str(page[-1]["seq"]) if len(page) == 2 else None})

    return lambda url: httpx.Client(base_url=url, transport=httpx.MockTransport(answered))


def _verify(rows: Rows, *more: str, problem: str | None = None) -> int:
    arguments = ["verify", "--url", "http://retain.example", "--tenant", "acme", *more]
    return main(arguments, _connected(rows, problem))


def test_an_honest_history_verifies_and_its_head_is_printed(entries: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verify(entries) == 0
    assert capsys.readouterr().out.splitlines()[0] == f"5 entries, head 5:{entries[-1]['hash']}"


async def test_the_deployment_s_own_history_has_a_path_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with living() as world:
        world.sql_now("INSERT INTO role_grants VALUES ('*', 'group:ops', 'viewer', 'ada', 1)")
        await MutationLog(world.sql, world.clock).seal("*")
        rows = [dict(row) for row in await world.stores().history().page("*", after=0, limit=100)]
    arguments = ["verify", "--url", "http://retain.example", "--tenant", "*"]
    assert main(arguments, _connected(rows, path="/admin/history")) == 0
    assert capsys.readouterr().out.startswith("1 entries, head 1:")


def test_a_stored_head_is_compared(entries: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verify(entries, "--head", f"3:{entries[2]['hash']}") == 0
    assert _verify(entries, "--head", f"0:{GENESIS}") == 0, "the head of a history before its first entry"
    assert _verify(entries[:2], "--head", f"3:{entries[2]['hash']}") == 1
    assert _verify(entries, "--head", f"3:{entries[1]['hash']}") == 1
    assert _verify(entries, "--head", "three") == 1
    assert "invalid_head" in capsys.readouterr().err


@pytest.mark.parametrize("column", ["seq", "kind", "subject_id", "digest", "at_ms", "previous_hash", "hash"])
def test_a_change_is_found_whatever_the_server_reports(
    entries: Rows, column: str, capsys: pytest.CaptureFixture[str]
) -> None:
    entries[2][column] = entries[2][column] + 1 if isinstance(entries[2][column], int) else "changed"
    assert _verify(entries) == 1
    assert "broken at entry 3" in capsys.readouterr().out


def test_what_only_the_server_can_see_counts_as_well(entries: Rows, capsys: pytest.CaptureFixture[str]) -> None:
    assert _verify(entries, problem="event_removed") == 1
    assert "event_removed at entry 3" in capsys.readouterr().out


def test_a_dump_verifies_from_its_file(entries: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dump", "--url", "http://retain.example", "--tenant", "acme"], _connected(entries)) == 0
    dumped = capsys.readouterr().out
    assert [json.loads(line) for line in dumped.splitlines()] == entries
    file = tmp_path / "acme.jsonl"
    file.write_text(dumped)
    assert main(["verify", "--file", str(file), "--tenant", "acme"]) == 0
    assert main(["verify", "--file", str(file), "--tenant", "another"]) == 1
    file.write_text(dumped.replace("record_stored", "record_edited", 1))
    assert main(["verify", "--file", str(file), "--tenant", "acme"]) == 1


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("[1]", id="another value"),
        pytest.param("{}", id="an entry without its members"),
        pytest.param('{"seq": 3', id="half a line"),
        pytest.param("", id="an empty line"),
        pytest.param("Zo\\xeb", id="not UTF-8"),
    ],
)
def test_a_damaged_dump_is_refused_and_named(
    entries: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str
) -> None:
    lines = [json.dumps(entry) for entry in entries]
    lines[2] = line
    file = tmp_path / "acme.jsonl"
    file.write_bytes("\n".join(lines).encode().replace(b"\\xeb", b"\xeb"))
    assert main(["verify", "--file", str(file), "--tenant", "acme"]) == 1
    printed = capsys.readouterr()
    assert (printed.out, printed.err.count("\n")) == ("", 1)
    assert "acme.jsonl cannot be read: " in printed.err
    assert printed.err.endswith("(invalid_dump)\n")


@pytest.mark.parametrize("url", ["http://[bad", "http://retain.example"])
def test_what_is_not_a_deployment_is_reported_on_a_line(capsys: pytest.CaptureFixture[str], url: str) -> None:
    def other(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="<html>")

    def connect(url: str) -> httpx.Client:
        with open_client(url):
            return httpx.Client(base_url=url, transport=httpx.MockTransport(other))

    assert main(["verify", "--url", url, "--tenant", "acme"], connect) == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_what_cannot_be_read_is_an_error(entries: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "no.jsonl").write_text("{")
    assert main(["verify", "--file", str(tmp_path / "no.jsonl"), "--tenant", "acme"]) == 1
    assert main(["verify", "--file", str(tmp_path / "absent"), "--tenant", "acme"]) == 1
    assert main(["verify", "--url", "http://retain.example", "--tenant", "nobody"], _connected(entries)) == 1
    assert main(["verify", "--url", "http://retain.example", "--tenant", "A B"], _connected(entries)) == 1
    printed = capsys.readouterr().err
    assert [code in printed for code in ("invalid_dump", "server_failed", "invalid_tenant")] == [True, True, True]
