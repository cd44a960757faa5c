"""Migrate the keys of items: show the state of the migration, begin a phase, backfill, record releases, roll back.

    retain namespaces status --url http://127.0.0.1:8787
    retain namespaces advance 1 --baseline 0.99 --url …
    retain namespaces backfill --url …
    retain namespaces release 1.4.0 --url …
    retain namespaces rollback 2 --url …

Every command can be repeated. Exits with 1 when it was refused; `status` also when the canonical hit rate is below the
baseline. Behind Cloudflare Access, the environment variables CF_ACCESS_CLIENT_ID and CF_ACCESS_CLIENT_SECRET hold a
service token. docs/namespaces.md is the runbook.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import httpx

from retain.cli.administrator import Connect, answer_of, open_client, run_command

PATH = "/admin/namespaces"
Shown = Mapping[str, Any]

_NEXT = {
    1: "wait until all services run with these flags, then deploy both flags as true and advance 2",
    2: "the backfill may begin in two minutes; record each release",
    3: "now deploy MEMORY_NAMESPACE_COMPAT_READ=false, and watch status",
}
_BACK = {
    2: "now deploy MEMORY_NAMESPACE_COMPAT_READ=true",
    1: "wait two minutes, then deploy MEMORY_NAMESPACE_WRITE_CANONICAL=false",
    0: "MEMORY_NAMESPACE_COMPAT_READ may be false again",
}


def status(options: argparse.Namespace, client: httpx.Client) -> int:  # noqa: ARG001
    """Print the state of the migration; exit with 1 when the canonical hit rate is below the baseline."""
    shown = _asked(client, "GET", PATH)
    _print(shown)
    for one in shown["obstacles"]:
        print(f"before the next phase: {one}")
    if shown["roll_back"]:
        print("below the baseline without compatible reads: roll back to 2")
    return 1 if shown["below_baseline"] and shown["phase"] >= 2 else 0


def advance(options: argparse.Namespace, client: httpx.Client) -> int:
    """Begin the next phase, if nothing prevents it."""
    baseline = {} if options.baseline is None else {"baseline": options.baseline}
    _print(_asked(client, "POST", f"{PATH}/phase", {"to": options.phase, **baseline}))
    print(_NEXT[options.phase])
    return 0


def rollback(options: argparse.Namespace, client: httpx.Client) -> int:
    """Return to the previous phase. Removes nothing."""
    _print(_asked(client, "POST", f"{PATH}/rollback", {"to": options.phase}))
    print(_BACK[options.phase])
    return 0


def release(options: argparse.Namespace, client: httpx.Client) -> int:
    """Record a release: it closes a cycle and opens the next."""
    _print(_asked(client, "POST", f"{PATH}/releases", {"release": options.release}))
    return 0


def backfill(options: argparse.Namespace, client: httpx.Client) -> int:
    """Copy all legacy values to canonical keys. After an interruption it resumes where it stopped."""
    body: dict[str, Any] = {"again": options.again}
    done = False
    while not done:
        answer = answer_of(client, "POST", f"{PATH}/backfill", body)
        shown, done, body = answer.json(), answer.status_code == 200, {}
    for row in shown["backfill"]:
        print(
            "{tier} {template}: {copied} copied, {present} present, {skipped} skipped, {refused} refused".format(**row)
        )
    return 1 if any(row["refused"] for row in shown["backfill"]) else 0


def _print(shown: Shown) -> None:
    flags = shown["flags"]
    settings = ", ".join(f"{name} {str(flags[name]).lower()}" for name in ("write_canonical", "compat_read"))
    print(
        f"phase {shown['phase']}, baseline {shown['baseline']}, {settings}{'' if flags['fit'] else ' (not this phase)'}"
    )
    for cycle in shown["cycles"]:
        rates = ", ".join(
            f"{tier} {'-' if counts['hit_rate'] is None else format(counts['hit_rate'], '.4f')}"
            for tier, counts in sorted(cycle["tiers"].items())
        )
        print(
            f"  cycle {cycle['cycle']} since {cycle['opened_by']}: {cycle['verdict'] or 'open'}, {rates or 'no reads'}"
        )


def _asked(client: httpx.Client, method: str, path: str, body: Mapping[str, Any] | None = None) -> Shown:
    found: Shown = answer_of(client, method, path, body).json()
    return found


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain namespaces", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for does in (status, advance, backfill, release, rollback):
        command = commands.add_parser(does.__name__, help=does.__doc__)
        command.add_argument("--url", required=True, help="the deployment's address")
        if does is advance:
            command.add_argument("phase", type=int, choices=(1, 2, 3))
            command.add_argument("--baseline", type=float, help="lowest canonical hit rate, with phase 1 (0.99)")
        if does is rollback:
            command.add_argument("phase", type=int, choices=(0, 1, 2))
        if does is release:
            command.add_argument("release", help="its name")
        if does is backfill:
            command.add_argument("--again", action="store_true", help="start from the beginning; copied values stay")
        command.set_defaults(does=does)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run a command; return the process's exit status."""
    return run_command(parse(sys.argv[1:] if arguments is None else arguments), connect)
