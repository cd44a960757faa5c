"""Recall memories as an agent, a house or a user would, or over the whole tenant.

retain recall "What does Ann drink?" --user ann
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, print_json, run_deployed
from retain.cli.deployed.remember import add_scope, scope_of
from retain.cli.deployed.runs import positive
from retain.cli.deployed.terminal import cut, one_line, width


def recall(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print what is recalled, best first: score, id and content on a line for each."""
    body = {"query": options.query, "top_k": options.top_k, **scope_of(options)}
    answer = deployment.ask("POST", f"{deployment.memories}/recall", body)
    if options.json:
        print_json(answer)
        return 0
    cells = width()
    for memory in answer["memories"]:
        print(cut(one_line(f"{memory['score']:.3f}  {memory['id']}  {memory['content']}"), cells))
    if not answer["memories"]:
        print("nothing was found", file=sys.stderr)
    if answer["degraded"]:
        print(f"recalled without: {one_line(str(answer['degraded']))}", file=sys.stderr)
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain recall", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("query")
    parser.add_argument("--top-k", type=positive, default=5, help="how many, at most 50 (5)")
    add_scope(parser)
    add_target(parser)
    parser.set_defaults(does=recall)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
