"""Save what a tenant remembers, or all that is kept of one user, as JSON lines.

retain export acme.jsonl
retain export ann.jsonl --user ann
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, run_deployed, segment
from retain.cli.deployed.line_files import kind_of, members_of, print_counts
from retain.cli.moving.patience import repeated
from retain.errors import InvalidInput, Unavailable
from retain.errors.codes import ForeignCode
from retain.identifiers import check_user_id


def export(options: argparse.Namespace, deployment: Deployment) -> int:
    """Write the export page by page. A file is complete or not there: it gets its name at the end."""
    path = f"{deployment.tenant}/export"
    if options.user is not None:
        path = f"{deployment.tenant}/users/{segment(check_user_id(options.user))}/export"
    target = None if options.file == "-" else Path(options.file)
    _check_new(target)
    # Of this process alone: two exports to one file would write into each other.
    part = None if target is None else target.with_name(f"{target.name}.{os.getpid()}.part")
    written: Counter[str] = Counter()
    try:
        with nullcontext(sys.stdout.buffer) if part is None else part.open("wb") as file:
            for page in _pages(deployment, path):
                written.update(_kinds(page))
                file.write(page)
        if part is not None and target is not None:
            _check_new(target)
            part.rename(target)
    except OSError as error:
        if target is None:
            raise
        raise InvalidInput(f"{target} cannot be written: {error}", code=ForeignCode("usage")) from error
    finally:
        if part is not None and not written and part.exists():  # before its first page: there is nothing to keep
            part.unlink()
    counts = {kind: count for kind, count in sorted(written.items()) if kind != "page"}
    print_counts(counts, sys.stderr if target is None else sys.stdout, as_json=options.json)
    return 0


def _check_new(target: Path | None) -> None:
    if target is not None and target.exists():
        raise InvalidInput(f"{target} exists: name another file", code=ForeignCode("usage"))


def _kinds(page: bytes) -> Iterator[str]:
    """Yield the kind of each line of a page. Raises: Unavailable when one has none."""
    for line in page.decode(errors="replace").split("\n"):
        if line.strip():
            kind = kind_of(line)
            if not kind:
                raise Unavailable("what answered is not Retain: it sent no export", code=ForeignCode("unreachable"))
            yield kind


def _pages(deployment: Deployment, path: str) -> Iterator[bytes]:
    """Yield every page, which ends with the cursor of the next one. Raises: Unavailable when it does not."""
    query: dict[str, str] = {}
    while True:
        ask = repeated if query else Deployment.answer
        page = ask(deployment, "GET", path, query=query).content.removesuffix(b"\n")
        yield page + b"\n"
        last = members_of(page.decode(errors="replace").rpartition("\n")[2])
        if last.get("kind") != "page":
            raise Unavailable("the export was cut off: a page has no last line", code=ForeignCode("unreachable"))
        if last.get("cursor") is None:
            return
        query = {"cursor": str(last["cursor"])}


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain export", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", help="a new file; - for standard output")
    parser.add_argument("--user", help="only what is kept of this user")
    add_target(parser)
    parser.set_defaults(does=export)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
