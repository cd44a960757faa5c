"""Say who may do what: list, grant and revoke roles of a tenant, or of every tenant.

    retain roles list --url http://127.0.0.1:8787 --tenant acme
    retain roles grant group:support viewer --url … --tenant acme
    retain roles revoke group:support --url … --tenant acme

`--tenant '*'` is every tenant, and the deployment itself. Every command can be repeated. Behind Cloudflare Access, the
environment variables CF_ACCESS_CLIENT_ID and CF_ACCESS_CLIENT_SECRET hold a service token, which must be an owner itself.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import httpx

from retain.cli.administrator import Connect, answer_of, open_client, run_command
from retain.identifiers import check_tenant
from retain.roles.role import EVERY_TENANT, ROLES
from retain.roles.subjects import check_subject


def list_roles(options: argparse.Namespace, client: httpx.Client) -> int:
    """Print who holds which role, a line for each."""
    for grant in _granted(client, _roles_of(options.tenant)):
        _print(grant)
    return 0


def grant(options: argparse.Namespace, client: httpx.Client) -> int:
    """Give a subject a role, instead of the one that it held there."""
    path = f"{_roles_of(options.tenant)}/{_segment(options.subject)}"
    _print(answer_of(client, "PUT", path, {"role": options.role}).json())
    return 0


def revoke(options: argparse.Namespace, client: httpx.Client) -> int:
    """Take a subject's role away. It may still work for a minute."""
    subject = check_subject(options.subject)
    path = _roles_of(options.tenant)
    if all(held["subject"] != subject for held in _granted(client, path)):
        print(f"{subject} holds no role there")
        return 0
    answer_of(client, "DELETE", f"{path}/{_segment(subject)}")
    print(f"{subject} has no role there now")
    return 0


def _granted(client: httpx.Client, path: str) -> Iterator[Mapping[str, Any]]:
    """Yield every grant, page by page. Raises: UpstreamFailed."""
    query: dict[str, str] = {}
    while True:
        page = answer_of(client, "GET", path, query=query).json()
        yield from page["roles"]
        if page["cursor"] is None:
            return
        query = {"cursor": page["cursor"]}


def _print(held: Mapping[str, Any]) -> None:
    print(f"{held['subject']} {held['role']}, granted by {held['granted_by']}")


def _roles_of(tenant: str) -> str:
    return "/admin/roles" if tenant == EVERY_TENANT else f"/admin/tenants/{check_tenant(tenant)}/roles"


def _segment(subject: str) -> str:
    return quote(check_subject(subject), safe="")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain roles", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for name, does in (("list", list_roles), ("grant", grant), ("revoke", revoke)):
        command = commands.add_parser(name, help=does.__doc__)
        if does is not list_roles:
            command.add_argument("subject", help="such as email:ada@example.com or group:support")
        if does is grant:
            command.add_argument("role", choices=ROLES)
        command.add_argument("--url", required=True, help="the deployment's address")
        command.add_argument("--tenant", required=True, help="its id, or * for every tenant and the deployment itself")
        command.set_defaults(does=does)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run a command; return the process's exit status."""
    return run_command(parse(sys.argv[1:] if arguments is None else arguments), connect)
