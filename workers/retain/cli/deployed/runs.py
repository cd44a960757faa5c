"""List, show and cancel the runs of a tenant's agents.

retain runs list --status open --agent sdr --since 2h
retain runs show 01M8…
retain runs cancel 01M8… --reason "the customer left"
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, Json, add_target, print_json, run_deployed, segment
from retain.cli.deployed.terminal import cut, moment, one_line, over_lines, width
from retain.identifiers import check_id

_STATUSES = ("queued", "running", "waiting", "completed", "failed", "cancelled", "open")
_PAGE = 50
_AGO = re.compile(r"([0-9]{1,6})([smhd])", re.ASCII)
_UNIT_MS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def list_runs(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print runs, the newest first, a line for each."""
    asked = {
        "limit": str(min(options.limit, _PAGE)),
        "status": options.status,
        "agent_type": options.agent,
        "instance_id": options.instance,
        "user_id": options.user,
        "by": options.by,
        "text": options.text,
        "since_ms": options.since,
        "until_ms": options.until,
    }
    query = {name: str(value) for name, value in asked.items() if value is not None}
    cells = width()
    for run in deployment.listed(deployment.runs, "runs", query, options.limit):
        print_json(run) if options.json else print(cut(line_of(run), cells))
    return 0


def show(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print one run: its state, what it was asked, and what it answered."""
    run = deployment.ask("GET", f"{deployment.runs}/{check_id(options.run_id)}")
    if options.json:
        print_json(run)
        return 0
    print(line_of(run))
    print(f"ended {moment(run['completed_at_ms'])}, {run['steps']} steps, model {one_line(run['model'])}")
    cached = f" ({run['cached_input_tokens']} from a cache)" if run.get("cached_input_tokens") else ""
    print(f"tokens {run['input_tokens']} in{cached}, {run['output_tokens']} out")
    if run["texts"] == "removed":
        print("its texts were removed")
    for name in ("waiting_for", "input", "output", "error"):
        if run[name] is not None:
            text = run[name] if isinstance(run[name], str) else _readable(run[name])
            print(f"{name}:\n{over_lines(text)}")
    return 0


def cancel(options: argparse.Namespace, deployment: Deployment) -> int:
    """Cancel a run and its delegates before the next side effect."""
    run = deployment.ask("GET", f"{deployment.runs}/{check_id(options.run_id)}")
    instance = f"{segment(run['agent_type'])}/instances/{segment(run['instance_id'])}"
    path = f"{deployment.agents}/{instance}/runs/{segment(run['run_id'])}/cancel"
    result = deployment.ask("POST", path, None if options.reason is None else {"reason": options.reason})
    print_json(result) if options.json else print(f"{one_line(run['run_id'])} {one_line(result['status'])}")
    return 0


def moment_ms(text: str) -> int:
    """Return a time in ms: `30m`, `2h` or `7d` ago, or a date or time of ISO 8601, in UTC unless it says otherwise.

    One before 1970 is 0.
    """
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return max(0, int(time.time() * 1000) - int(ago[1]) * _UNIT_MS[ago[2]])
    try:
        at = datetime.fromisoformat(text)
        return max(0, int((at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp() * 1000))
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError("give 30m, 2h, 7d, or a date or time such as 2026-11-23T09:00") from error


def positive(text: str) -> int:
    """Return a number from 1."""
    if not (text.isascii() and text.isdecimal() and 0 < len(text) <= len("1000000") and int(text) > 0):
        raise argparse.ArgumentTypeError("give a number from 1 to 9999999")
    return int(text)


def line_of(run: Json) -> str:
    """Return a run on one line: its id, when it began, its status, where it runs, and for whom."""
    at = f"{run['agent_type']}/{run['instance_id']}"
    user = "" if run["user_id"] is None else f"  {run['user_id']}"
    return one_line(f"{run['run_id']}  {moment(run['created_at_ms'])}  {run['status']:<9}  {at}{user}")


def _readable(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain runs", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for name, does in (("list", list_runs), ("show", show), ("cancel", cancel)):
        command = commands.add_parser(name, help=does.__doc__)
        if does is list_runs:
            command.add_argument("--status", choices=_STATUSES, help="`open`: any that have not ended")
            command.add_argument("--agent", help="only this agent's")
            command.add_argument("--instance", help="only this instance's; with --agent")
            command.add_argument("--user", help="only those that acted for this user")
            command.add_argument("--by", help="only those that this principal started, such as key:01M8…")
            command.add_argument("--text", help="only those with this text in their input or answer")
            command.add_argument("--since", type=moment_ms, help="only those that began then or later: 2h, 2026-11-23")
            command.add_argument("--until", type=moment_ms, help="only those that began before")
            command.add_argument("--limit", type=positive, default=_PAGE, help="most runs to print (50)")
        else:
            command.add_argument("run_id")
        if does is cancel:
            command.add_argument("--reason", help="kept with the run")
        add_target(command)
        command.set_defaults(does=does)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run a command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
