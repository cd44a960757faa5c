"""List the agents of a deployment: their types, what they are for, and to whom they delegate.

retain agents
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, print_json, run_deployed
from retain.cli.deployed.terminal import cut, one_line, width

_MOST = 10_000


def agents(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print the agents, a line for each."""
    cells = width()
    for agent in deployment.listed(deployment.agents, "agents", {}, _MOST):
        if options.json:
            print_json(agent)
            continue
        delegates = f" → {', '.join(agent['delegates'])}" if agent["delegates"] else ""
        print(cut(one_line(f"{agent['agent_type']}{delegates}  {agent['description']}"), cells))
    return 0


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain agents", description=(__doc__ or "").partition("\n")[0])
    add_target(parser)
    parser.set_defaults(does=agents)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
