"""Ingest a conversation from a file: each message becomes a memory, and facts are extracted from it.

retain ingest chat.json --user ann
retain ingest meeting.txt --conversation standup-17
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, print_json, run_deployed
from retain.cli.deployed.exit_status import FAILED
from retain.cli.deployed.line_files import print_counts, text_of
from retain.cli.deployed.remember import add_scope, scope_of
from retain.cli.deployed.terminal import one_line
from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode
from retain.json_text import read_json

_MOST = 500
"""Messages of one request."""
_COUNTS = ("stored", "duplicate", "rejected", "extracted")
_TAKEN = ("id", "speaker", "role", "content", "at_ms")
_LINE = re.compile(r"([^\s:][^:\n]{0,63}):[ \t]+(.*)")
_POLL_S = 1.0


def ingest(options: argparse.Namespace, deployment: Deployment) -> int:
    """Send the messages, wait for their jobs, and print how many were stored, known, rejected, and how many facts found."""
    messages = _messages(text_of(options.file), options.speaker)
    conversation = options.conversation or (None if options.file == "-" else Path(options.file).stem)
    if conversation is None:
        raise InvalidInput("name the conversation: --conversation", code=ForeignCode("usage"))
    counts: Counter[str] = Counter()
    for first in range(0, len(messages), _MOST):
        body = {"conversation": conversation, "messages": messages[first : first + _MOST], **scope_of(options)}
        job = deployment.ask("POST", f"{deployment.memories}/ingest", body)
        while job["state"] == "running":
            time.sleep(_POLL_S)
            job = deployment.ask("GET", f"{deployment.memories}/ingest/{job['job_id']}")
        if options.json:
            print_json(job)
        counts.update({name: job[name] for name in _COUNTS})
        for one in job["rejections"]:
            print(f"message {first + one['index'] + 1}: {one_line(one['message'])} ({one['code']})", file=sys.stderr)
        if job["state"] != "completed":
            print(f"job {job['job_id']} is {job['state']}: {one_line(str(job['error']))}", file=sys.stderr)
            return FAILED
    if not options.json:
        print_counts(counts, sys.stdout, as_json=False)
    return FAILED if counts["rejected"] else 0


def _messages(text: str, speakers: Mapping[str, str]) -> list[dict[str, object]]:
    """Return the messages of a file: JSON (an array, or an object with `messages`), JSON lines, or `Name: text` lines."""
    found = _listed(text)
    if found is None:
        return _transcript(text)
    messages: list[dict[str, object]] = []
    for number, one in enumerate(found, start=1):
        if not isinstance(one, dict):
            raise InvalidInput(f"message {number} is not an object", code=ForeignCode("usage"))
        message = {name: one[name] for name in _TAKEN if one.get(name) is not None}
        if "speaker" not in message:
            role = str(one.get("role", ""))
            message["speaker"] = one.get("name") or speakers.get(role, role)
        _check_sendable(number, message)
        messages.append(message)
    return messages


def _check_sendable(number: int, message: Mapping[str, object]) -> None:
    """Refuse what JSON or UTF-8 cannot have before the messages ahead of it are sent. Raises: InvalidInput."""
    try:
        json.dumps(message, allow_nan=False, ensure_ascii=False).encode()
    except ValueError as error:
        raise InvalidInput(f"message {number} cannot be sent: {error}", code=ForeignCode("usage")) from error


def _listed(text: str) -> list[object] | None:
    try:
        value = read_json(text)
    except ValueError:
        try:
            return [read_json(line) for line in text.split("\n") if line.strip()]
        except ValueError:
            return None
    if isinstance(value, dict) and isinstance(value.get("messages"), list):
        messages: list[object] = value["messages"]
        return messages
    return value if isinstance(value, list) else [value]


def _transcript(text: str) -> list[dict[str, object]]:
    """Return the messages of lines `Name: text`. A line without a name continues the message before it."""
    messages: list[tuple[str, list[str]]] = []
    for number, line in enumerate(text.split("\n"), start=1):
        message = _LINE.fullmatch(line.rstrip())
        if message is not None:
            messages.append((message[1], [message[2]]))
        elif messages:
            messages[-1][1].append(line.rstrip())
        elif line.strip():
            raise InvalidInput(f"line {number} is neither JSON nor `Name: text`", code=ForeignCode("usage"))
    return [{"speaker": who, "content": "\n".join(lines).strip()} for who, lines in messages]


def _named(text: str) -> tuple[str, str]:
    role, mark, name = text.partition("=")
    if not (role and mark and name):
        raise argparse.ArgumentTypeError("give ROLE=NAME, such as user=Ann")
    return role, name


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain ingest", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", help="JSON, JSON lines, or lines `Name: text`; - for standard input")
    parser.add_argument("--conversation", help="its id; the file's name if absent")
    parser.add_argument(
        "--speaker",
        type=_named,
        action="append",
        default=[],
        metavar="ROLE=NAME",
        help="who speaks in a role: user=Ann",
    )
    add_scope(parser)
    add_target(parser)
    parser.set_defaults(does=ingest)
    options = parser.parse_args(arguments)
    options.speaker = dict(options.speaker)
    return options


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
