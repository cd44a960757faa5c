"""The command's first word: which subcommand runs. A subcommand's module is imported only when it is named."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from retain.cli.deployed.exit_status import FAILED, INTERRUPTED, PIPE_CLOSED, USAGE
from retain.cli.project import require_project
from retain.errors import RetainError
from retain.version import __version__


@dataclass(frozen=True, slots=True)
class Subcommand:
    """A subcommand. module: has `main(arguments)`, which returns the exit status; one in `tools` is the project's own."""

    name: str
    module: str
    help: str


SUBCOMMANDS = (
    Subcommand("dev", "tools.dev", "serve the project on this machine, with the real workerd"),
    Subcommand("demo", "tools.demo", "run the order-triage scenario on a fresh local server"),
    Subcommand("new", "retain.cli.starter", "write a starter agent with a script and a test"),
    Subcommand("stage", "tools.stage", "check the agents, and collect what is uploaded"),
    Subcommand("eval", "retain.cli.evaluate", "evaluate agents on datasets"),
    Subcommand("runs", "retain.cli.deployed.runs", "list, show and cancel the runs of a tenant's agents"),
    Subcommand("tail", "retain.cli.deployed.tail", "follow a run, or all runs, as they happen"),
    Subcommand("costs", "retain.cli.deployed.costs", "print what a tenant spent"),
    Subcommand("agents", "retain.cli.deployed.agents", "list the agents"),
    Subcommand("recall", "retain.cli.deployed.recall", "recall memories"),
    Subcommand("remember", "retain.cli.deployed.remember", "store one memory"),
    Subcommand("ingest", "retain.cli.deployed.ingest", "ingest a conversation from a file"),
    Subcommand("export", "retain.cli.moving.export", "save what a tenant remembers to a file"),
    Subcommand("import", "retain.cli.moving.importing", "bring an export, or that of another product, into a tenant"),
    Subcommand("doctor", "retain.cli.deployed.doctor", "check a deployment"),
    Subcommand("gateway", "retain.cli.gateway", "manage API keys, tools and credentials of the tool proxy"),
    Subcommand("history", "retain.cli.history", "verify or dump the world history of a tenant"),
    Subcommand("keys", "retain.cli.keys", "create, list, rotate and revoke the keys of applications"),
    Subcommand("roles", "retain.cli.roles", "list, grant and revoke roles"),
    Subcommand("shards", "retain.cli.moving.shards", "list databases, and move tenants between them"),
    Subcommand("namespaces", "retain.cli.namespaces", "migrate the keys of items"),
    Subcommand("completion", "retain.cli.completion.shells", "print what completes command lines in bash, zsh or fish"),
    Subcommand("lifecycle-rules", "retain.cli.lifecycle_rules", "print the life cycle rules of the cold tier's bucket"),
)
"""In the order of the help."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the subcommand that the arguments name; return the process's exit status."""
    _open_closed_streams()
    _prepare_streams()
    try:
        try:
            return _run(sys.argv[1:] if arguments is None else arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return PIPE_CLOSED
    except OSError as error:
        # An error names its file; standard output has no name.
        _drop_output()
        print(error if error.filename else f"the output cannot be written: {error.strerror}", file=sys.stderr)
        return FAILED


def _run(arguments: Sequence[str]) -> int:
    for argument in arguments:
        if not _is_utf8(argument):
            print(f"an argument is not UTF-8: {argument!r}", file=sys.stderr)
            return USAGE
    options = _parser().parse_args(arguments)
    subcommand: Subcommand = options.subcommand
    try:
        if subcommand.module.startswith("tools."):
            require_project().import_tools()
        status: int = import_module(subcommand.module).main(options.arguments)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("retain", "tools"):
            raise
        print(
            f"`retain {subcommand.name}` needs {error.name}: run `pip install '.[cli]'` in a checkout of Retain",
            file=sys.stderr,
        )
        return FAILED
    except RetainError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
        return FAILED
    return status


def _open_closed_streams() -> None:
    """Open what the shell closed (`>&-`): it cannot be read or written, as a full disk cannot; messages are dropped."""
    for name, mode, access in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, access), mode, encoding="utf-8"))


def _prepare_streams() -> None:
    """Make files and pipes UTF-8, whatever the locale is: they are data. A terminal keeps its encoding.

    Lines are written at once: what follows a run may read them. What a terminal's encoding lacks is shown as an escape.
    """
    if isinstance(sys.stdin, io.TextIOWrapper):
        encoding = sys.stdin.encoding if sys.stdin.isatty() else "utf-8-sig"
        sys.stdin.reconfigure(encoding=encoding, errors="strict")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace", line_buffering=True)


def _drop_output() -> None:
    """Forget what is still buffered: it would fail once more when the interpreter ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="retain", description="Develop and operate agents that remember.")
    parser.add_argument("--version", action="version", version=f"retain {__version__}")
    names = parser.add_subparsers(metavar="COMMAND", required=True)
    for subcommand in SUBCOMMANDS:
        # Its own parser reads all that follows, --help too.
        added = names.add_parser(subcommand.name, help=subcommand.help, add_help=False, prefix_chars="\0")
        added.add_argument("arguments", nargs=argparse.REMAINDER)
        added.set_defaults(subcommand=subcommand)
    return parser
