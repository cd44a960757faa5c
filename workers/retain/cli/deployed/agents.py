"""List the agents of a deployment, and define, show, roll back and delete those of its tenant.

retain agents
retain agents show concierge
retain agents put concierge.yaml --if-match 3
retain agents versions concierge
retain agents rollback concierge 2
retain agents delete concierge
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, Json, add_target, json_of, print_json, run_deployed, segment
from retain.cli.deployed.runs import positive
from retain.cli.deployed.terminal import cut, moment, one_line, over_lines, width
from retain.cli.yaml_text import read_yaml_file
from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode

_MOST = 10_000


def list_agents(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print the agents, a line for each: what they are for, and to whom they delegate."""
    cells = width()
    for agent in deployment.listed(deployment.agents, "agents", {}, _MOST):
        if options.json:
            print_json(agent)
            continue
        delegates = f" → {', '.join(agent['delegates'])}" if agent["delegates"] else ""
        print(cut(one_line(f"{agent['agent_type']}{delegates}  {agent['description']}"), cells))
    return 0


def show(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print an agent as it is defined now, or one of its versions."""
    path = _path(deployment, options.agent_type)
    shown = deployment.ask("GET", path if options.version is None else f"{path}/versions/{options.version}")
    if options.json:
        print_json(shown)
        return 0
    print(_line(shown) if shown["version"] is not None else one_line(f"{shown['agent_type']}  of the repository"))
    if shown["definition"] is not None:
        print(over_lines(json.dumps(shown["definition"], ensure_ascii=False, indent=2)))
    return 0


def put(options: argparse.Namespace, deployment: Deployment) -> int:
    """Define an agent of the tenant, or change it: FILE is as in `agents/`."""
    definition = _definition(options.file)
    agent_type = options.agent or definition.get("type") or options.file.stem
    path = _path(deployment, str(agent_type))
    checked = deployment.ask("POST", f"{path}/check", definition)
    for problem in checked["problems"]:
        print(over_lines(f"{problem['pointer'] or options.file.name}: {problem['message']}"), file=sys.stderr)
    return _changed(options, deployment, "PUT", path, definition) if checked["valid"] else 1


def versions(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print the versions of an agent of the tenant, the newest first."""
    path = f"{_path(deployment, options.agent_type)}/versions"
    for version in deployment.listed(path, "versions", {}, _MOST):
        print_json(version) if options.json else print(_line(version))
    return 0


def rollback(options: argparse.Namespace, deployment: Deployment) -> int:
    """Define an agent as it was in an earlier version."""
    path = f"{_path(deployment, options.agent_type)}/rollback"
    return _changed(options, deployment, "POST", path, {"version": options.version})


def delete(options: argparse.Namespace, deployment: Deployment) -> int:
    """Delete an agent of the tenant: it begins no more runs."""
    deployment.answer("DELETE", _path(deployment, options.agent_type), headers=_based_on(options))
    if options.json:
        print_json({"agent_type": options.agent_type, "deleted": True})
    else:
        print(one_line(f"{options.agent_type} was deleted; its versions are kept"))
    return 0


def _changed(
    options: argparse.Namespace, deployment: Deployment, method: str, path: str, body: Mapping[str, object]
) -> int:
    answer = json_of(deployment.answer(method, path, json=body, headers=_based_on(options)))
    if options.json:
        print_json(answer)
        return 0
    print(_line(answer) if answer["added"] else f"{_line(answer)}  nothing changed")
    for warning in answer["warnings"]:
        print(one_line(f"warning: {warning['pointer']} {warning['message']}"), file=sys.stderr)
    return 0


def _based_on(options: argparse.Namespace) -> dict[str, str]:
    return {} if options.if_match is None else {"if-match": f'"{options.if_match}"'}


def _definition(path: Path) -> dict[str, object]:
    """Return what a file has. Raises: InvalidInput when it cannot be read, or has something else than a mapping."""
    try:
        return read_yaml_file(path)
    except ValueError as error:
        raise InvalidInput(str(error), code=ForeignCode("usage")) from error


def _path(deployment: Deployment, agent_type: str) -> str:
    return f"{deployment.tenant}/agents/{segment(agent_type)}"


def _line(version: Json) -> str:
    restored = "" if version["restored_from"] is None else f"  as {version['restored_from']}"
    deleted = "  deleted" if version.get("deleted") else ""
    at, who = moment(version["created_at_ms"]), version["created_by"]
    return one_line(f"{version['agent_type']}  {version['version']}  {at}  {who}{restored}{deleted}")


def _version(text: str) -> int:
    return 0 if text == "0" else positive(text)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line. Without a subcommand the agents are listed."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments = ["list", *arguments]
    parser = argparse.ArgumentParser(prog="retain agents", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    named = {"list": list_agents, "show": show, "put": put, "versions": versions, "rollback": rollback}
    for name, does in (*named.items(), ("delete", delete)):
        command = commands.add_parser(name, help=does.__doc__)
        if does is put:
            command.add_argument("file", type=Path, metavar="FILE")
            command.add_argument("--agent", help="its type; that in the file, or the file's name, if absent")
        elif does is not list_agents:
            command.add_argument("agent_type")
        if does is show:
            command.add_argument("--version", type=positive, help="show this one; the current one if absent")
        if does is rollback:
            command.add_argument("version", type=positive)
        if does in (put, rollback, delete):
            command.add_argument("--if-match", type=_version, help="the version that must be current; 0 for none")
        add_target(command)
        command.set_defaults(does=does)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run a command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
