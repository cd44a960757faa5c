"""Store one memory of an agent, a house, a user or the whole tenant. Idempotent by content.

retain remember "Ann drinks tea." --user ann
echo "Ann drinks tea." | retain remember - --user ann
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, print_json, run_deployed
from retain.cli.deployed.line_files import text_of
from retain.cli.deployed.terminal import one_line
from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode
from retain.json_text import read_json

_KINDS = ("fact", "event", "instruction", "task")
_MOST_READ = 65_537
"""One more character than a memory's content can have bytes: the deployment refuses what is too long."""


def remember(options: argparse.Namespace, deployment: Deployment) -> int:
    """Store the memory, and print its id."""
    content = text_of("-", _MOST_READ).removesuffix("\n") if options.content == "-" else options.content
    body: dict[str, object] = {"content": content, "kind": options.kind, **scope_of(options)}
    if options.metadata is not None:
        body["metadata"] = _metadata(options.metadata)
    stored = deployment.ask("POST", deployment.memories, body)
    if options.json:
        print_json(stored)
    else:
        print(one_line(stored["id"]) + ("" if stored["created"] else " was already there"))
    return 0


def add_scope(command: argparse.ArgumentParser) -> None:
    """Add the options that say whose memories are meant."""
    command.add_argument("--agent", help="this agent's")
    command.add_argument("--house", help="this house's")
    command.add_argument("--user", help="this user's")


def scope_of(options: argparse.Namespace) -> dict[str, str]:
    """Return the members of a body that say whose memories are meant."""
    named = {"agent_type": options.agent, "house": options.house, "user_id": options.user}
    return {name: value for name, value in named.items() if value is not None}


def _metadata(text: str) -> object:
    try:
        return read_json(text)
    except ValueError as error:
        raise InvalidInput(f"--metadata is not JSON: {error}", code=ForeignCode("usage")) from error


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain remember", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("content", help="the text; - reads it from standard input")
    parser.add_argument("--kind", choices=_KINDS, default="fact")
    parser.add_argument("--metadata", help="an object, as JSON")
    add_scope(parser)
    add_target(parser)
    parser.set_defaults(does=remember)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
