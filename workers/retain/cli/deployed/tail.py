"""Follow a run as it happens, a line for each event; or all runs of a tenant, a line for each change of one.

retain tail 01M8…
retain tail --agent sdr
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, Json, add_target, print_json, run_deployed, segment
from retain.cli.deployed.exit_status import FAILED
from retain.cli.deployed.runs import line_of
from retain.cli.deployed.terminal import cut, one_line, width
from retain.errors import Unavailable, UnusableAnswer
from retain.identifiers import check_id
from retain.json_text import read_json
from retain.server_sent_events import EventReader, ServerSentEvent

_LAST = ("run.completed", "run.failed", "run.cancelled")
_SHOWN = (
    "name",
    "arguments",
    "content",
    "text",
    "output",
    "code",
    "message",
    "error",
    "reason",
    "id",
    "records",
    "turns",
)
"""What a line has of an event's data, in this order."""
_OPEN = ("queued", "running", "waiting")
_POLL_S = 2.0
_OPEN_MOST = 200
_SINCE_MS = 60_000
"""How long ago a run may have begun that is found although it was never seen open."""
_TRIES = 5
_NO_CONTENT = 204


def tail(options: argparse.Namespace, deployment: Deployment) -> int:
    """Follow what the options name, until it ends or Ctrl-C."""
    if options.run_id is None:
        return _follow_all(options, deployment)
    run = deployment.ask("GET", f"{deployment.runs}/{check_id(options.run_id)}")
    cells, last = width(), ""
    for event, data in _events(deployment, run):
        last = event.name
        if options.json:
            print_json({"event": event.name, "id": event.id or None, "data": data})
        elif event.name != "text.delta":
            print(cut(_line(event, data), cells))
    return 0 if last in ("", _LAST[0]) else FAILED


def _events(deployment: Deployment, run: Json) -> Iterator[tuple[ServerSentEvent, Mapping[str, object]]]:
    """Yield the events of a run, each once, over as many connections as it takes.

    Raises: Unavailable when it failed five times in a row.
    """
    path = (
        f"{deployment.agents}/{segment(run['agent_type'])}/instances/{segment(run['instance_id'])}/runs/{run['run_id']}"
    )
    after, failures = "", 0
    while True:
        try:
            with deployment.streamed(f"{path}/events", {"last-event-id": after} if after else {}) as answer:
                if answer.status_code == _NO_CONTENT:
                    return
                reader = EventReader()
                for piece in answer.iter_bytes():
                    for event in reader.feed(piece):
                        after, failures = event.id or after, 0
                        yield event, _object(event.data)
                        if event.name in _LAST:
                            return
        except Unavailable:
            failures += 1
            if failures == _TRIES:
                raise
            time.sleep(_POLL_S)


def _follow_all(options: argparse.Namespace, deployment: Deployment) -> int:
    cells = width()
    seen: dict[str, str] = {}
    wanted = {"agent_type": options.agent, "user_id": options.user}
    query = {name: value for name, value in wanted.items() if value is not None}
    begun_ms = int(time.time() * 1000)
    failures = 0
    while True:
        since = {"since_ms": str(max(begun_ms, int(time.time() * 1000) - _SINCE_MS))}
        try:
            runs = _known(deployment, query, since, seen)
            failures = 0
        except Unavailable:
            failures += 1
            if failures == _TRIES:
                raise
            runs = []
        for run in sorted(runs, key=lambda one: str(one["run_id"])):
            if seen.get(run["run_id"]) != run["status"]:
                seen[run["run_id"]] = run["status"]
                print_json(run) if options.json else print(cut(line_of(run), cells))
        time.sleep(_POLL_S)


def _known(
    deployment: Deployment, query: Mapping[str, str], since: Mapping[str, str], seen: Mapping[str, str]
) -> list[Json]:
    """Return the runs that are open or new, and those that were open when they were last seen."""
    found = {
        run["run_id"]: run
        for more in ({"status": "open"}, since)
        for run in deployment.listed(deployment.runs, "runs", {**query, **more}, _OPEN_MOST)
    }
    gone = [run_id for run_id, status in seen.items() if run_id not in found and status in _OPEN]
    return [*found.values(), *(deployment.ask("GET", f"{deployment.runs}/{run_id}") for run_id in gone)]


def _object(text: str) -> Mapping[str, object]:
    try:
        value = read_json(text)
    except ValueError as error:
        raise UnusableAnswer("an event is not JSON", code="malformed_answer") from error
    return value if isinstance(value, dict) else {}


def _line(event: ServerSentEvent, data: Mapping[str, object]) -> str:
    at = f"{datetime.now(UTC):%H:%M:%S}"
    where = "" if data.get("turn") is None else f" {data['turn']}"
    shown = "  ".join(_shown(data[name]) for name in _SHOWN if data.get(name) not in (None, "", [], {}))
    return one_line(f"{at}Z{where:>4}  {event.name:<18}  {shown}".rstrip())


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain tail", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("run_id", nargs="?", help="the run; all runs of the tenant if absent")
    parser.add_argument("--agent", help="only runs of this agent")
    parser.add_argument("--user", help="only runs that act for this user")
    add_target(parser)
    parser.set_defaults(does=tail)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
