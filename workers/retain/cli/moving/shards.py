"""Say where tenants live, where a deployment has several databases, and move them.

    retain shards list --url http://127.0.0.1:8787
    retain shards show acme --url …
    retain shards move acme DB_1 --url …
    retain shards cancel acme 01M8… --url …

`move` continues until the move is completed, and can be repeated: it then continues. `cancel` undoes one before its switch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from retain.cli.administrator import Connect, answer_of, open_client, run_command
from retain.identifiers import check_id, check_tenant

PAUSE_S = 0.5
"""How long the command waits between two calls of a move."""
_LONG_PAUSE_S = 5.0
"""The same while the source keeps what has moved for readers that still ask there."""


def list_shards(_: argparse.Namespace, client: httpx.Client) -> int:
    """Print what is on each database, if there are several."""
    shards = answer_of(client, "GET", "/admin/shards").json()["shards"]
    if not shards:
        print("the deployment has one database")
    for shard in shards:
        size = "" if shard["bytes"] is None else f", {shard['bytes'] / 1e6:.1f} MB"
        print(f"{shard['shard']}: {shard['tenants']} tenants{size}, {shard['moving']} moving")
    return 0


def show(options: argparse.Namespace, client: httpx.Client) -> int:
    """Print on which database a tenant lives."""
    found = answer_of(client, "GET", f"/admin/tenants/{check_tenant(options.tenant)}/shard").json()
    print(found["shard"])
    if found["move"] is not None:
        _print(found["move"])
    return 0


def move(options: argparse.Namespace, client: httpx.Client) -> int:
    """Move a tenant to another database, until that is completed."""
    path = f"/admin/tenants/{check_tenant(options.tenant)}/shard"
    before = ""
    while True:
        answer = answer_of(client, "POST", path, {"shard": options.shard})
        found = answer.json()
        if found["step"] != before:
            _print(found)
            before = found["step"]
        if answer.status_code != 202:
            _print(found)
            return 0
        time.sleep(_LONG_PAUSE_S if found["step"] == "remove" else PAUSE_S)


def cancel(options: argparse.Namespace, client: httpx.Client) -> int:
    """Cancel a move before its switch, until its copy is removed."""
    path = f"/admin/tenants/{check_tenant(options.tenant)}/moves/{check_id(options.move)}"
    while (answer := answer_of(client, "DELETE", path)).status_code == 202:
        time.sleep(PAUSE_S)
    _print(answer.json())
    return 0


def _print(found: Mapping[str, Any]) -> None:
    counts = ", ".join(f"{count} {name}" for name, count in found["counts"].items())
    where = f"{found['source']} to {found['target']}"
    print(f"{found['move_id']} {where}: {found['state']}, {found['step']}" + (f" ({counts})" if counts else ""))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain shards", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for name, does in (("list", list_shards), ("show", show), ("move", move), ("cancel", cancel)):
        command = commands.add_parser(name, help=does.__doc__)
        if does is not list_shards:
            command.add_argument("tenant", help="its id")
        if does is move:
            command.add_argument("shard", help="the name of the database's binding, as DB_1")
        if does is cancel:
            command.add_argument("move", help="the move's id")
        command.add_argument("--url", required=True, help="the deployment's address")
        command.set_defaults(does=does)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run a command; return the process's exit status."""
    return run_command(parse(sys.argv[1:] if arguments is None else arguments), connect)
