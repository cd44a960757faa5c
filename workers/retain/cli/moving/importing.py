"""Bring an export of Retain, or what another product exported, into a tenant. To repeat it changes nothing.

retain import acme.jsonl
retain import memories.json --from mem0
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, json_of, run_deployed
from retain.cli.deployed.line_files import kind_of, lines_of, print_counts, text_of
from retain.cli.deployed.terminal import one_line
from retain.cli.moving import langgraph, mem0, zep
from retain.cli.moving.memory import ForeignMemory, ImportTarget, lines
from retain.cli.moving.patience import repeated
from retain.errors import RetainError
from retain.identifiers import check_agent_type
from retain.lifecycle.transfer.lines import MAX_BYTES, MAX_ITEM_LINES, MAX_LINES

_PRODUCTS = ("mem0", "zep", "langgraph")
_LINES = {"content-type": "application/x-ndjson"}


def bring(options: argparse.Namespace, deployment: Deployment) -> int:
    """Import a file in parts, each of which is imported as a whole or not at all. To repeat it changes nothing.

    Of an export it keeps a part in memory; what another product wrote is read whole, before anything is sent.
    """
    found: Iterable[str] = (
        lines_of(options.file) if options.product is None else list(_converted(options, deployment.tenant_id))
    )
    done: Counter[str] = Counter()
    part = ""
    query = {"include_erased": "true"} if options.include_erased else {}
    for first, last, part in _parts(found):
        try:
            sent = {"query": query, "content": part, "headers": _LINES}
            ask = repeated if done else Deployment.answer
            answer = ask(deployment, "POST", f"{deployment.tenant}/import", **sent)
        except RetainError:
            more = "" if not done else " What came before them is imported; repeat the command once it is put right."
            print(f"lines {first} to {last} of {one_line(options.file)} were refused.{more}", file=sys.stderr)
            if options.product is None and not kind_of(part.partition("\n")[0]):
                products = ", ".join(_PRODUCTS)
                print(
                    f"it is not an export of Retain: --from names the product that wrote it ({products})",
                    file=sys.stderr,
                )
            raise
        done.update(json_of(answer))
    print_counts(done, sys.stdout, as_json=options.json)
    if options.product is None and not _ends_an_export(part.rpartition("\n")[2]):
        print("the file ends before the last page of an export: it may be cut off", file=sys.stderr)
    return 0


def _converted(options: argparse.Namespace, tenant_id: str) -> Iterator[str]:
    whole = text_of(options.file)
    undated_ms = 0 if options.file == "-" else int(Path(options.file).stat().st_mtime * 1000)
    agent_type = None if options.agent is None else check_agent_type(options.agent)
    to = ImportTarget(tenant_id, options.product, agent_type, options.user, undated_ms)
    readers: Mapping[str, Callable[[str], Iterator[ForeignMemory]]] = {
        "mem0": mem0.memories,
        "zep": zep.memories,
        "langgraph": partial(langgraph.memories, user_at=options.user_at),
    }
    return lines(readers[options.product](whole), to)


def _parts(found: Iterable[str]) -> Iterator[tuple[int, int, str]]:
    """Yield parts that one request may have, each with the numbers of its first and last line."""
    part: list[str] = []
    size, items, first, number = 0, 0, 1, 0
    for number, line in enumerate(found, start=1):
        added, item = len(line.encode("utf-8", "replace")) + 1, '"item"' in line and kind_of(line) == "item"
        full = len(part) == MAX_LINES or (item and items == MAX_ITEM_LINES)
        if part and (full or size + added > MAX_BYTES):
            yield first, number - 1, "\n".join(part)
            part, size, items, first = [], 0, 0, number
        if line.strip():
            part.append(line)
            size, items = size + added, items + item
    if part:
        yield first, number, "\n".join(part)


def _ends_an_export(line: str) -> bool:
    return kind_of(line) == "page" and '"cursor":null' in line.replace(" ", "")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain import", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", help="an export; - for standard input")
    parser.add_argument("--from", dest="product", choices=_PRODUCTS, help="the product that wrote it, if not Retain")
    parser.add_argument("--agent", help="with --from: only this agent may know it")
    parser.add_argument("--user", help="with --from: the user whose it is, where the file names none")
    parser.add_argument(
        "--user-at", type=int, metavar="N", help="with --from langgraph: which part of a namespace, from 0, is the user"
    )
    parser.add_argument("--include-erased", action="store_true", help="also what was erased in the tenant")
    add_target(parser)
    parser.set_defaults(does=bring)
    options = parser.parse_args(arguments)
    if options.product is None and (options.agent or options.user or options.user_at is not None):
        parser.error("--agent, --user and --user-at need --from")
    if options.user_at is not None and options.product != "langgraph":
        parser.error("--user-at needs --from langgraph")
    return options


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run the command; return the process's exit status."""
    return run_deployed(parse(sys.argv[1:] if arguments is None else arguments), connect)
