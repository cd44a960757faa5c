from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import stat
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from retain.cli.gateway import find_credentials_key, main
from retain.cli.project import Project
from retain.cli.wrangler_kv import WranglerKv, wrangler_of
from retain.errors import Misconfigured, Unavailable
from retain.errors.codes import ForeignCode
from retain.gateway.credentials import OpenedCredentials, credential_name
from retain.gateway.keys import read_grant, stored_name
from retain.gateway.provisioning import new_api_key
from retain.gateway.settings import GatewaySettings
from retain.gateway.tool_config import tool_name_in_kv
from retain.host.clock import ManualClock
from retain.host.crypto import HostCrypto
from tests.gateway.setting import TENANT, TOOL, config

KEY = base64.b64encode(bytes(32)).decode()
SECRET = "swordfish"


class Wrangler:
    """Does to a dictionary what `wrangler kv` does to a namespace, and records the commands."""

    def __init__(self) -> None:
        self.store: dict[str, str] = {}
        self.commands: list[list[str]] = []

    def __call__(self, arguments: Sequence[str]) -> str:
        self.commands.append(list(arguments))
        match list(arguments):
            case ["kv", "key", "put", key, "--path", path, *_]:
                assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
                self.store[key] = Path(path).read_text()
                return "Writing"
            case ["kv", "key", "delete", key, *_]:
                self.store.pop(key, None)
                return "Deleting"
            case ["kv", "key", "list", "--prefix", prefix, *_]:
                return json.dumps([{"name": key} for key in sorted(self.store) if key.startswith(prefix)])
            case ["kv", "bulk", "get", path, *_]:
                keys = json.loads(Path(path).read_text())
                assert len(keys) <= 100
                return json.dumps({key: {"value": self.store.get(key)} for key in keys})
        raise AssertionError(arguments)


@pytest.fixture
def wrangler() -> Wrangler:
    return Wrangler()


def run(
    wrangler: Wrangler,
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    secret: str = SECRET,
    local_secrets: Path = Path("/nonexistent"),
) -> int:
    return main(
        arguments,
        run=wrangler,
        environment={"CREDENTIALS_KEY": KEY} if environment is None else environment,
        read_secret=lambda: secret,
        local_secrets=local_secrets,
    )


def tool_file(folder: Path, **changes: object) -> str:
    path = folder / "tool.yaml"
    path.write_text(yaml.safe_dump({"name": TOOL, **config(), **changes}))
    return str(path)


def create_key(wrangler: Wrangler, capsys: pytest.CaptureFixture[str], *more: str, tenant: str = TENANT) -> str:
    assert run(wrangler, "key", "create", "--tenant", tenant, "--scope", "*", *more) == 0
    return capsys.readouterr().out.strip()


def test_creating_a_key_prints_it_once_and_stores_its_hash(
    wrangler: Wrangler, capsys: pytest.CaptureFixture[str]
) -> None:
    api_key = create_key(wrangler, capsys, "--days", "2")
    grant = read_grant(wrangler.store[stored_name(api_key)])
    assert (grant.tenant_id, grant.scopes) == (TENANT, ("*",))
    assert grant.expires_at_ms == grant.created_at_ms + 2 * 86_400_000
    assert api_key not in json.dumps([wrangler.commands, wrangler.store])


@pytest.mark.parametrize("days", ["0", "3651", "99999999999999"])
def test_a_key_that_outlives_the_calendar_is_not_created(wrangler: Wrangler, days: str) -> None:
    assert run(wrangler, "key", "create", "--tenant", TENANT, "--scope", "*", "--days", days) == 1
    assert not wrangler.commands


def test_a_key_of_an_earlier_version_that_ends_after_the_calendar_is_listed(
    wrangler: Wrangler, capsys: pytest.CaptureFixture[str]
) -> None:
    create_key(wrangler, capsys)
    [(name, value)] = wrangler.store.items()
    wrangler.store[name] = json.dumps({**json.loads(value), "expires_at_ms": 10**24})
    assert run(wrangler, "list", "--tenant", TENANT) == 0
    assert capsys.readouterr().out.endswith("expires after the year 9999\n")


def test_the_json_of_wrangler_is_found_after_other_lines(
    wrangler: Wrangler, capsys: pytest.CaptureFixture[str]
) -> None:
    create_key(wrangler, capsys)

    def talking(arguments: Sequence[str]) -> str:
        return f"[wrangler] a new version is available\n\n{wrangler(arguments)}\n"

    assert main(["list", "--tenant", TENANT], run=talking) == 0
    assert capsys.readouterr().out.startswith("key   ")
    assert main(["list", "--tenant", TENANT], run=lambda _: "Sign in first.") == 1
    assert "Sign in first. (wrangler_failed)" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "where"),
    [
        pytest.param(["--local-config", "l.json"], ["--config", "l.json", "--local"], id="local"),
        pytest.param(
            ["--local-config", "l.json", "--persist-to", "d"],
            ["--config", "l.json", "--local", "--persist-to", "d"],
            id="local, elsewhere",
        ),
        pytest.param(["--remote"], ["--config", "wrangler.toml", "--remote"], id="remote"),
    ],
)
def test_the_commands_name_the_namespace(wrangler: Wrangler, options: list[str], where: list[str]) -> None:
    assert run(wrangler, "key", "create", "--tenant", TENANT, "--scope", TOOL, *options) == 0
    (command,) = wrangler.commands
    assert command[6:8] == ["--binding", "KV"]
    assert [Path(part).name if "/" in part else part for part in command[8:]] == where


def test_a_revoked_key_is_removed_and_others_stay(wrangler: Wrangler, capsys: pytest.CaptureFixture[str]) -> None:
    revoked, kept = create_key(wrangler, capsys), create_key(wrangler, capsys)
    key_id = read_grant(wrangler.store[stored_name(revoked)]).key_id
    assert run(wrangler, "key", "revoke", "--tenant", TENANT, "--key-id", key_id) == 0
    assert list(wrangler.store) == [stored_name(kept)]


@pytest.mark.parametrize(
    ("tenant", "shorten", "code"),
    [
        pytest.param("globex", 0, "no_such_key", id="of another tenant"),
        pytest.param(TENANT, 1, "invalid_key_id", id="a part of an id"),
    ],
)
def test_only_the_tenants_own_key_is_revoked_by_its_whole_id(
    wrangler: Wrangler, capsys: pytest.CaptureFixture[str], tenant: str, shorten: int, code: str
) -> None:
    api_key = create_key(wrangler, capsys)
    key_id = read_grant(wrangler.store[stored_name(api_key)]).key_id
    key_id = key_id[: len(key_id) - shorten]
    assert run(wrangler, "key", "revoke", "--tenant", tenant, "--key-id", key_id) == 1
    assert code in capsys.readouterr().err
    assert stored_name(api_key) in wrangler.store


def test_a_tool_is_stored_from_its_file(wrangler: Wrangler, tmp_path: Path) -> None:
    assert run(wrangler, "tool", "put", "--tenant", TENANT, "--file", tool_file(tmp_path)) == 0
    assert json.loads(wrangler.store[tool_name_in_kv(TENANT, TOOL)]) == config()


def test_a_changed_tool_needs_a_higher_version(
    wrangler: Wrangler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def put(**changes: object) -> int:
        return run(wrangler, "tool", "put", "--tenant", TENANT, "--file", tool_file(tmp_path, **changes))

    assert put() == 0
    assert put() == 0
    assert put(description="Another.") == 1
    assert "version_not_raised" in capsys.readouterr().err
    assert put(description="Another.", version=2) == 0


@pytest.mark.parametrize(
    ("changes", "options", "status"),
    [
        pytest.param({"url": "http://127.0.0.1:9/", "host": "127.0.0.1:9"}, [], 0, id="this machine, locally"),
        pytest.param(
            {"url": "http://127.0.0.1:9/", "host": "127.0.0.1:9"}, ["--remote"], 1, id="this machine, remotely"
        ),
        pytest.param({"method": "BREW"}, [], 1, id="a wrong method"),
        pytest.param({"name": "Not a name"}, [], 1, id="a wrong name"),
        pytest.param({"name": None}, [], 1, id="no name"),
    ],
)
def test_a_tool_is_checked_before_it_is_stored(
    wrangler: Wrangler, tmp_path: Path, changes: dict[str, object], options: list[str], status: int
) -> None:
    arguments = ["tool", "put", "--tenant", TENANT, "--file", tool_file(tmp_path, **changes), *options]
    assert run(wrangler, *arguments) == status
    assert bool(wrangler.store) is (status == 0)


@pytest.mark.parametrize("text", [None, b"- a\n- b\n", b"{", b"", b"name: Zo\xeb\n"])
def test_a_file_that_is_not_a_tool_is_refused(wrangler: Wrangler, tmp_path: Path, text: bytes | None) -> None:
    path = tmp_path / "tool.yaml"
    if text is not None:
        path.write_bytes(text)
    assert run(wrangler, "tool", "put", "--tenant", TENANT, "--file", str(path)) == 1
    assert not wrangler.commands


async def _opened(wrangler: Wrangler) -> str:
    place = credential_name(TENANT, TOOL)
    return await OpenedCredentials(HostCrypto(), ManualClock(), GatewaySettings(KEY)).open(place, wrangler.store[place])


def test_a_credential_is_sealed_before_it_leaves_the_process(
    wrangler: Wrangler, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(wrangler, "credential", "put", "--tenant", TENANT, "--tool", TOOL, secret=f"{SECRET}\n") == 0
    assert asyncio.run(_opened(wrangler)) == SECRET
    captured = capsys.readouterr()
    assert SECRET not in json.dumps([wrangler.commands, wrangler.store]) + captured.out + captured.err


def test_a_credential_is_never_an_argument(wrangler: Wrangler) -> None:
    with pytest.raises(SystemExit):
        run(wrangler, "credential", "put", "--tenant", TENANT, "--tool", TOOL, "--secret", SECRET)


def test_deleting_a_tool_deletes_its_credential(wrangler: Wrangler, tmp_path: Path) -> None:
    run(wrangler, "tool", "put", "--tenant", TENANT, "--file", tool_file(tmp_path))
    run(wrangler, "credential", "put", "--tenant", TENANT, "--tool", TOOL)
    assert len(wrangler.store) == 2
    assert run(wrangler, "tool", "delete", "--tenant", TENANT, "--tool", TOOL) == 0
    assert not wrangler.store


def test_the_list_shows_the_tenants_keys_and_tools_and_no_secret(
    wrangler: Wrangler, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = [create_key(wrangler, capsys) for _ in range(150)]
    other = create_key(wrangler, capsys, tenant="globex")
    run(wrangler, "tool", "put", "--tenant", TENANT, "--file", tool_file(tmp_path))
    run(wrangler, "credential", "put", "--tenant", TENANT, "--tool", TOOL)
    capsys.readouterr()
    assert run(wrangler, "list", "--tenant", TENANT) == 0
    shown = capsys.readouterr().out
    assert shown.count("key ") == 150
    assert f"tool  {TOOL}  version 1  POST https://api.example.com/orders  credential stored" in shown
    assert read_grant(wrangler.store[stored_name(other)]).key_id not in shown
    assert not any(key in shown for key in keys)
    assert SECRET not in shown


def test_the_list_begins_with_the_oldest_key_and_says_when_each_was_created_and_expires(
    wrangler: Wrangler, capsys: pytest.CaptureFixture[str]
) -> None:
    day_ms = 86_400_000
    made = [new_api_key(TENANT, [TOOL], now_ms=(20 - number) * day_ms, lifetime_ms=day_ms) for number in range(9)]
    made.append(new_api_key(TENANT, ["*"], now_ms=20_000 * day_ms))
    wrangler.store = {new.entry.key: new.entry.value for new in made}
    assert run(wrangler, "list", "--tenant", TENANT) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[1] for line in shown] == [new.key_id for new in [*reversed(made[:9]), made[9]]]
    assert shown[0].endswith(f"scopes {TOOL}  created 1970-01-13 00:00 UTC  expired 1970-01-14 00:00 UTC")
    assert shown[-1].endswith("scopes *  created 2024-10-04 00:00 UTC")


@pytest.mark.parametrize(
    ("environment", "remote", "found"),
    [
        pytest.param({"CREDENTIALS_KEY": KEY}, False, bytes(32), id="the environment, locally"),
        pytest.param({"CREDENTIALS_KEY": KEY}, True, bytes(32), id="the environment, remotely"),
        pytest.param({}, False, b"\x01" * 32, id="the development secrets"),
    ],
)
def test_the_sealing_key_is_found(tmp_path: Path, environment: dict[str, str], remote: bool, found: bytes) -> None:
    file = tmp_path / ".dev.vars"
    key = base64.b64encode(bytes([1]) * 32)
    file.write_bytes(b'OTHER=Zo\xeb\nexport CREDENTIALS_KEY = "%b" # mine\n' % key)
    assert find_credentials_key(environment, remote=remote, local_secrets=file) == found


@pytest.mark.parametrize("remote", [True, False])
def test_a_deployment_never_gets_the_development_key(tmp_path: Path, remote: bool) -> None:
    file = tmp_path / ".dev.vars"
    if remote:
        file.write_text(f"CREDENTIALS_KEY={KEY}\n")
    with pytest.raises(Misconfigured) as refused:
        find_credentials_key({}, remote=remote, local_secrets=file)
    assert refused.value.code == "credentials_key_missing"


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param([], True, id="the local server's"),
        pytest.param(["--persist-to", "/d"], False, id="an option wins"),
        pytest.param(["--remote"], False, id="a deployment has another"),
    ],
)
def test_the_state_is_the_one_that_the_local_server_keeps(
    wrangler: Wrangler, tmp_path: Path, options: list[str], named: bool
) -> None:
    environment = {"CREDENTIALS_KEY": KEY, "RETAIN_STATE": str(tmp_path)}
    assert run(wrangler, "list", "--tenant", TENANT, *options, environment=environment) == 0
    [states] = {
        tuple(after for before, after in pairwise(command) if before == "--persist-to") for command in wrangler.commands
    }
    assert (states == (str(tmp_path),)) is named


async def test_a_listing_pages_as_the_port_says(wrangler: Wrangler) -> None:
    kv = WranglerKv(wrangler, [])
    for name in ("p:a", "p:b", "p:c", "q:a"):
        await kv.put(name, name)
    page = await kv.list("p:", limit=2)
    assert (page.keys, page.cursor) == (["p:a", "p:b"], "p:b")
    last = await kv.list("p:", cursor=page.cursor, limit=2)
    assert (last.keys, last.cursor) == (["p:c"], None)
    assert await kv.get("p:a") == "p:a"
    assert await kv.get("p:none") is None


def test_a_failure_of_wrangler_is_reported(tmp_path: Path) -> None:
    failing = tmp_path / "node_modules" / ".bin" / "wrangler"
    failing.parent.mkdir(parents=True)
    failing.write_text(f"#!{sys.executable}\nimport sys\nsys.exit('no such namespace')\n")
    failing.chmod(0o755)
    with pytest.raises(Unavailable, match="no such namespace"):
        wrangler_of(Project(tmp_path))(["kv", "key", "list"])
    failing.unlink()
    with pytest.raises(Unavailable, match="make setup"):
        wrangler_of(Project(tmp_path))(["kv", "key", "list"])


def test_ctrl_c_while_wrangler_works_interrupts_the_command() -> None:
    def interrupted(arguments: Sequence[str]) -> str:
        os.kill(os.getpid(), signal.SIGINT)  # which a terminal sends to wrangler as well, and wrangler fails
        raise Unavailable("wrangler failed", code=ForeignCode("wrangler_failed"))

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            main(["list", "--tenant", TENANT], run=interrupted)
    finally:
        signal.signal(signal.SIGINT, before)
