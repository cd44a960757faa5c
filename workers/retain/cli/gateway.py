"""Create API keys, tools and upstream credentials for the tool proxy, in the KV of a deployment or the local server.

    retain gateway key create --tenant acme --scope '*'
    retain gateway tool put --tenant acme --file tool.yaml
    retain gateway credential put --tenant acme --tool create_order < secret.txt
    retain gateway list --tenant acme

Without `--remote` it writes to the KV of `retain dev`, in the state that RETAIN_STATE names, and allows upstreams on
this machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from retain.cli.deployed.line_files import text_of
from retain.cli.project import Project, require_project, variables_of
from retain.cli.wrangler_kv import Run, WranglerKv, wrangler_of
from retain.cli.yaml_text import read_yaml_file
from retain.errors import Conflict, InvalidInput, Misconfigured, NotFound, RetainError
from retain.errors.codes import ForeignCode
from retain.gateway.credentials import credential_name, read_credentials_key
from retain.gateway.keys import STORED_PREFIX, Grant, read_grant
from retain.gateway.provisioning import KEY_ID_CHARACTERS, credential_entry, new_api_key, tool_entry
from retain.gateway.tool_config import tool_name_in_kv
from retain.host.crypto import HostCrypto
from retain.identifiers import check_tenant, check_tool_name
from retain.json_text import read_json
from retain.memory.records.limits import END_OF_DATES_MS
from retain.ports import Kv

_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Workplace:
    """What a command works with. read_secret: reads the credential from standard input."""

    kv: WranglerKv
    remote: bool
    credentials_key: Callable[[], bytes]
    read_secret: Callable[[], str]
    now_ms: int


async def create_key(work: Workplace, options: argparse.Namespace) -> None:
    """Make an API key and print it; only its hash is stored."""
    lifetime_ms = None if options.days is None else options.days * _DAY_MS
    new = new_api_key(options.tenant, options.scope, now_ms=work.now_ms, lifetime_ms=lifetime_ms)
    await new.entry.write(work.kv)
    print(f"key {new.key_id} of tenant {options.tenant}; it is shown only now:", file=sys.stderr)
    print(new.api_key)


async def revoke_key(work: Workplace, options: argparse.Namespace) -> None:
    """Remove an API key. Isolates that keep it, and other locations, may accept it for up to another minute."""
    tenant = check_tenant(options.tenant)
    if len(options.key_id) < KEY_ID_CHARACTERS:
        raise InvalidInput("that is not a complete key id", code=ForeignCode("invalid_key_id"))
    names = await _names(work.kv, STORED_PREFIX + options.key_id)
    values = await work.kv.values(names)
    mine = [name for name, text in values.items() if text is not None and read_grant(text).tenant_id == tenant]
    if not mine:
        raise NotFound("the tenant has no such key", code=ForeignCode("no_such_key"))
    for name in mine:
        await work.kv.delete(name)
    print(f"revoked key {options.key_id} of tenant {tenant}")
    print("isolates that have used it accept it for GATEWAY_KEPT_SECONDS longer, other locations for about a minute")


async def put_tool(work: Workplace, options: argparse.Namespace) -> None:
    """Check a tool's YAML file and store it. A change needs a higher version."""
    config = _read_tool_file(options.file)
    name = config.pop("name", None)
    entry = tool_entry(
        options.tenant,
        check_tool_name(name),
        config,
        allow_loopback=not work.remote,
        allow_query_credential=options.allow_query_credential,
    )
    stored = await work.kv.get(entry.key)
    before: Any = None if stored is None or stored == entry.value else read_json(stored)
    if before is not None and before["version"] >= config["version"]:
        raise Conflict("the tool has changed: raise its version", code=ForeignCode("version_not_raised"))
    await entry.write(work.kv)
    print(f"stored tool {name}, version {config['version']}, for tenant {options.tenant}")


async def delete_tool(work: Workplace, options: argparse.Namespace) -> None:
    """Remove a tool and its credential."""
    tenant, tool = check_tenant(options.tenant), check_tool_name(options.tool)
    await work.kv.delete(tool_name_in_kv(tenant, tool))
    await work.kv.delete(credential_name(tenant, tool))
    print(f"removed tool {tool} of tenant {tenant}")


async def put_credential(work: Workplace, options: argparse.Namespace) -> None:
    """Seal the text on standard input as the tool's upstream credential."""
    secret = work.read_secret().strip()
    entry = await credential_entry(HostCrypto(), work.credentials_key(), options.tenant, options.tool, secret)
    await entry.write(work.kv)
    print(f"stored the credential of tool {options.tool} for tenant {options.tenant}")


async def show(work: Workplace, options: argparse.Namespace) -> None:
    """Print the tenant's keys, the oldest first, and its tools, one per line, without secrets."""
    tenant = check_tenant(options.tenant)
    keys = await work.kv.values(await _names(work.kv, STORED_PREFIX))
    grants = (read_grant(text) for text in keys.values() if text is not None)
    for grant in sorted(grants, key=lambda grant: (grant.created_at_ms, grant.key_id)):
        if grant.tenant_id == tenant:
            print(_line(grant, work.now_ms))
    prefix = tool_name_in_kv(tenant, "")
    tools = await work.kv.values(await _names(work.kv, prefix))
    sealed = await _names(work.kv, credential_name(tenant, ""))
    for key, text in tools.items():
        if text is not None:
            name = key.removeprefix(prefix)
            config: Any = read_json(text)
            credential = "credential stored" if credential_name(tenant, name) in sealed else "no credential"
            print(f"tool  {name}  version {config['version']}  {config['method']} {config['url']}  {credential}")


def _line(grant: Grant, now_ms: int) -> str:
    parts = [f"key   {grant.key_id}", f"scopes {','.join(grant.scopes)}", f"created {_moment(grant.created_at_ms)}"]
    if grant.expires_at_ms is not None:
        ended = grant.expires_at_ms <= now_ms
        parts.append(f"{'expired' if ended else 'expires'} {_moment(grant.expires_at_ms)}")
    return "  ".join(parts)


def _moment(at_ms: int) -> str:
    if at_ms >= END_OF_DATES_MS:
        return "after the year 9999"
    return f"{datetime.fromtimestamp(at_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC"


def _read_tool_file(path: Path) -> dict[str, object]:
    try:
        return read_yaml_file(path)
    except ValueError as error:
        raise InvalidInput(str(error), code="invalid_tool_configuration") from error


async def _names(kv: Kv, prefix: str) -> list[str]:
    names: list[str] = []
    cursor: str | None = None
    while True:
        page = await kv.list(prefix, cursor=cursor)
        names += page.keys
        cursor = page.cursor
        if cursor is None:
            return names


def find_credentials_key(environment: Mapping[str, str], *, remote: bool, local_secrets: Path) -> bytes:
    """Return the key that seals credentials: CREDENTIALS_KEY of the environment, or of `.dev.vars` for local use.

    A remote deployment never gets values sealed with the development key.

    Raises: Misconfigured.
    """
    text = environment.get("CREDENTIALS_KEY", "")
    if not text and not remote and local_secrets.exists():
        # What other lines have is nothing to this one; the key is in base64.
        text = variables_of(local_secrets.read_text(encoding="utf-8", errors="replace")).get("CREDENTIALS_KEY", "")
    if not text and remote:
        raise Misconfigured(
            "set CREDENTIALS_KEY to the deployment's secret of that name", code="credentials_key_missing"
        )
    return read_credentials_key(text)


def namespace_options(project: Project, options: argparse.Namespace, environment: Mapping[str, str]) -> list[str]:
    """Return wrangler's options that name the KV namespace: the deployment's, or the one that `retain dev` serves."""
    if options.remote:
        return ["--binding", options.binding, "--config", str(project.production_config), "--remote"]
    config = options.local_config or project.local_config
    state = options.persist_to or environment.get("RETAIN_STATE")
    place = [] if not state else ["--persist-to", str(Path(state).resolve())]
    return ["--binding", options.binding, "--config", str(config), "--local", *place]


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--tenant", required=True)
    place = common.add_mutually_exclusive_group()
    place.add_argument("--remote", action="store_true", help="write to the deployment that wrangler.toml describes")
    place.add_argument("--local-config", type=Path, help="wrangler's configuration for local use")
    common.add_argument(
        "--persist-to", type=Path, help="the local server's state, if not in RETAIN_STATE or .wrangler/state"
    )
    common.add_argument("--binding", default="KV")
    parser = argparse.ArgumentParser(prog="retain gateway", description=(__doc__ or "").partition("\n")[0])
    nouns = parser.add_subparsers(required=True)

    def command(noun: Any, name: str, does: Callable[..., Any]) -> argparse.ArgumentParser:
        made: argparse.ArgumentParser = noun.add_parser(name, parents=[common], help=does.__doc__)
        made.set_defaults(does=does)
        return made

    keys = nouns.add_parser("key", help="API keys").add_subparsers(required=True)
    create = command(keys, "create", create_key)
    create.add_argument("--scope", action="append", required=True, help="a tool's name, or '*'; may be repeated")
    create.add_argument("--days", type=int, help="days until the key expires")
    command(keys, "revoke", revoke_key).add_argument("--key-id", required=True)
    tools = nouns.add_parser("tool", help="tools").add_subparsers(required=True)
    put = command(tools, "put", put_tool)
    put.add_argument("--file", type=Path, required=True)
    put.add_argument("--allow-query-credential", action="store_true", help="also if traces then record the credential")
    command(tools, "delete", delete_tool).add_argument("--tool", required=True)
    credentials = nouns.add_parser("credential", help="upstream credentials").add_subparsers(required=True)
    command(credentials, "put", put_credential).add_argument("--tool", required=True)
    command(nouns, "list", show)
    return parser.parse_args(arguments)


def main(
    arguments: Sequence[str] | None = None,
    *,
    run: Run | None = None,
    environment: Mapping[str, str] = os.environ,
    read_secret: Callable[[], str] | None = None,
    local_secrets: Path | None = None,
) -> int:
    """Run a command; return the process's exit status. Arguments that are left out come from the surrounding project."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    try:
        project = require_project()
        work = Workplace(
            WranglerKv(run or wrangler_of(project), namespace_options(project, options, environment)),
            options.remote,
            lambda: find_credentials_key(
                environment, remote=options.remote, local_secrets=local_secrets or project.local_secrets
            ),
            read_secret or partial(text_of, "-"),
            time.time_ns() // 1_000_000,
        )
        # asyncio.run would cancel a task that waits for wrangler, which ends by Ctrl-C too: as a failure of wrangler.
        with closing(asyncio.new_event_loop()) as loop:
            loop.run_until_complete(options.does(work, options))
    except RetainError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
        return 1
    return 0
