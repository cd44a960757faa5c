"""Verify a tenant's world history, or save it to a file, without trusting the server that returns it.

    retain history verify --url http://127.0.0.1:8787 --tenant acme [--head SEQ:HASH]
    retain history dump --url http://127.0.0.1:8787 --tenant acme > acme.jsonl
    retain history verify --file acme.jsonl --tenant acme

`verify` recomputes the chain from the entries, prints its head, and asks the server (unless it reads a file) to compare
it with the learning stream and with the head that it keeps. Exits with 1 when anything is wrong. Behind Cloudflare
Access, the environment variables CF_ACCESS_CLIENT_ID and CF_ACCESS_CLIENT_SECRET hold a service token.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import httpx

from retain.cli.administrator import answer_of, exit_status, open_client
from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode
from retain.identifiers import check_tenant
from retain.json_text import read_json
from retain.roles.role import EVERY_TENANT
from retain.tenants.history import GENESIS, follow

Entry = Mapping[str, Any]
_COLUMNS = {"seq", "kind", "subject_id", "digest", "at_ms", "previous_hash", "hash"}


@dataclass(frozen=True, slots=True)
class Chain:
    """How far a history is valid. entries, head: of the valid part. broken_at: None when all of it is valid."""

    entries: int
    head: str
    broken_at: int | None
    found: Mapping[int, str]
    """The hashes of the entries that were asked for, by number."""


class _Verdict(TypedDict):
    problem: str | None
    broken_at: int | None


class Server:
    """A deployment, seen by its administrator."""

    def __init__(self, client: httpx.Client, tenant_id: str) -> None:
        self._client = client
        self._path = "/admin/history" if tenant_id == EVERY_TENANT else f"/admin/tenants/{tenant_id}/history"

    def entries(self) -> Iterator[Entry]:
        """Yield every entry in order, page by page. Raises: UpstreamFailed."""
        after = "0"
        while True:
            page = self._get(self._path, {"after": after})
            yield from page["entries"]
            if page["cursor"] is None:
                return
            after = page["cursor"]

    def verdict(self) -> _Verdict:
        """Return the server's result of comparing its history with its learning stream and the kept head."""
        found = self._get(f"{self._path}/verify", {})
        while found["cursor"] is not None:
            found = self._get(f"{self._path}/verify", {"cursor": found["cursor"]})
        return {"problem": found["problem"], "broken_at": found["broken_at"]}

    def _get(self, path: str, query: Mapping[str, str]) -> dict[str, Any]:
        found: dict[str, Any] = answer_of(self._client, "GET", path, query=query).json()
        return found


def read_file(path: Path) -> Iterator[Entry]:
    """Yield the entries of a dump. Raises: InvalidInput."""
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                entry: Any = read_json(line)
                if not (isinstance(entry, dict) and entry.keys() >= _COLUMNS):
                    raise ValueError(f"line {number} is not an entry of a history")
                yield entry
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", code=ForeignCode("invalid_dump")) from error


def check(tenant_id: str, entries: Iterable[Entry], asked: frozenset[int] = frozenset()) -> Chain:
    """Recompute the chain, entry by entry. asked: the numbers of entries whose hashes to return."""
    seq, head = 0, GENESIS
    found = {seq: head}
    for entry in entries:
        before = seq
        seq, head = follow(tenant_id, [entry], seq, head)
        if seq == before:
            return Chain(seq, head, seq + 1, found)
        if seq in asked:
            found[seq] = head
    return Chain(seq, head, None, found)


def verify(options: argparse.Namespace, server: Server | None) -> int:
    """Recompute the chain, print its head, and compare it with a kept head."""
    kept = None if options.head is None else _head(options.head)
    entries = read_file(options.file) if server is None else server.entries()
    chain = check(options.tenant, entries, frozenset() if kept is None else frozenset([kept[0]]))
    if chain.broken_at is not None:
        print(f"broken at entry {chain.broken_at}: it does not follow from the entry before it")
        return 1
    print(f"{chain.entries} entries, head {chain.entries}:{chain.head}")
    if kept is not None and chain.found.get(kept[0]) != kept[1]:
        print(f"entry {kept[0]} does not match the kept head: the history was cut off or rewritten")
        return 1
    if server is not None:
        verdict = server.verdict()
        if verdict["problem"] is not None:
            print(f"the server finds {verdict['problem']} at entry {verdict['broken_at']}")
            return 1
        print("the learning stream and the kept head agree with it")
    return 0


def dump(options: argparse.Namespace, server: Server | None) -> int:  # noqa: ARG001
    """Print every entry as a line of JSON."""
    assert server is not None  # it has no other source
    for entry in server.entries():
        print(json.dumps(entry))
    return 0


def _head(text: str) -> tuple[int, str]:
    seq, _, digest = text.partition(":")
    if not seq.isdecimal() or len(digest) != len(GENESIS):
        raise InvalidInput("a head is the number of an entry, a colon, and its hash", code="invalid_head")
    return int(seq), digest


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain history", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for does in (verify, dump):
        command = commands.add_parser(does.__name__, help=does.__doc__)
        command.add_argument("--tenant", required=True, help="its id, or * for changes of the whole deployment")
        place = command.add_mutually_exclusive_group(required=True)
        place.add_argument("--url", help="the deployment's address")
        if does is verify:
            place.add_argument("--file", type=Path, help="the output of dump")
            command.add_argument("--head", help="a kept head: SEQ:HASH")
        command.set_defaults(does=does)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Callable[[str], httpx.Client] = open_client) -> int:
    """Run a command; return the process's exit status."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    does: Callable[[argparse.Namespace, Server | None], int] = options.does

    def run() -> int:
        if options.tenant != EVERY_TENANT:
            check_tenant(options.tenant)
        if options.url is None:
            return does(options, None)
        with connect(options.url) as client:
            return does(options, Server(client, options.tenant))

    return exit_status(run)
