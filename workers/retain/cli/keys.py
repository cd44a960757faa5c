"""Create, list, change, rotate and revoke the keys with which applications reach a tenant.

    retain keys create --url http://127.0.0.1:8787 --tenant acme --name shop --scope runs --scope memory:read
    retain keys list --url … --tenant acme
    retain keys change 01M8… --url … --tenant acme --origin https://shop.example
    retain keys rotate 01M8… --url … --tenant acme --grace-minutes 60
    retain keys list --profile staging
    retain keys signing-key
    retain keys revoke 01M8… --url … --tenant acme

A key is printed once, when it is created or replaced, and alone on standard output. Behind Cloudflare Access, the
environment variables CF_ACCESS_CLIENT_ID and CF_ACCESS_CLIENT_SECRET hold a service token, which must be an owner.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx

from retain.application_keys.scope import KEY_SCOPES
from retain.cli.administrator import Connect, answer_of, open_client, run_command
from retain.cli.deployed.connection import address_of, present, tenant_of
from retain.cli.deployed.profile import Destination, find_target
from retain.errors import RetainError
from retain.identifiers import check_id


def create(options: argparse.Namespace, client: httpx.Client) -> int:
    """Create a key, and print it."""
    body = {"name": options.name, "scopes": options.scope, "origins": options.origin or [], "days": options.days}
    _print_new(answer_of(client, "POST", _keys_of(options), body).json())
    return 0


def list_keys(options: argparse.Namespace, client: httpx.Client) -> int:
    """Print the keys, the newest first, a line for each: also those that are no longer valid."""
    query: dict[str, str] = {}
    while True:
        page = answer_of(client, "GET", _keys_of(options), query=query).json()
        for key in page["keys"]:
            print(_line(key))
        if page["cursor"] is None:
            return 0
        query = {"cursor": page["cursor"]}


def change(options: argparse.Namespace, client: httpx.Client) -> int:
    """Change a key's name, or the origins whose pages may use it: those given replace the ones that it had."""
    origins = [] if options.no_origins else options.origin
    body = {name: value for name, value in (("name", options.name), ("origins", origins)) if value is not None}
    print(_line(answer_of(client, "PATCH", f"{_keys_of(options)}/{check_id(options.key_id)}", body).json()))
    return 0


def rotate(options: argparse.Namespace, client: httpx.Client) -> int:
    """Create a key like another one, which stays valid for a while, and print the new one."""
    path = f"{_keys_of(options)}/{check_id(options.key_id)}/rotate"
    answer = answer_of(client, "POST", path, {"grace_minutes": options.grace_minutes}).json()
    _print_new(answer)
    print(_line(answer["replaces"]), file=sys.stderr)
    return 0


def revoke(options: argparse.Namespace, client: httpx.Client) -> int:
    """Revoke a key. It may still work for ten seconds."""
    print(_line(answer_of(client, "DELETE", f"{_keys_of(options)}/{check_id(options.key_id)}").json()))
    return 0


def print_signing_key(_: argparse.Namespace) -> None:
    """Print a new key that signs the tokens of applications' users, for `wrangler secret put TOKEN_KEY`."""
    print(new_signing_key())


def new_signing_key() -> str:
    """Return a JWK with a private key on P-256, as JSON."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key

    numbers = generate_private_key(SECP256R1()).private_numbers()
    parts = {"x": numbers.public_numbers.x, "y": numbers.public_numbers.y, "d": numbers.private_value}
    written = {
        name: base64.urlsafe_b64encode(value.to_bytes(32, "big")).rstrip(b"=").decode() for name, value in parts.items()
    }
    return json.dumps({"kty": "EC", "crv": "P-256", **written}, separators=(",", ":"))


def _print_new(key: Mapping[str, Any]) -> None:
    print(f"{_line(key)}; it is shown only now:", file=sys.stderr)
    print(key["key"])


def _line(key: Mapping[str, Any]) -> str:
    reported = [f"{key['key_id']} {key['name']}: {', '.join(key['scopes'] + key['origins'])}"]
    for field, what in (("last_used_at_ms", "last used"), ("expires_at_ms", "expires"), ("revoked_at_ms", "revoked")):
        if key[field] is not None:
            reported.append(f"{what} {datetime.fromtimestamp(key[field] / 1000, UTC):%Y-%m-%d %H:%M} UTC")
    return ", ".join(reported)


def _keys_of(options: argparse.Namespace) -> str:
    return f"{options.root}/tenants/{options.tenant}/keys"


def _destination(options: argparse.Namespace) -> Destination:
    """Return the deployment that is meant. With `--url` the caller is an operator: the key of the environment is not sent.

    Raises: InvalidInput when none is named, or no tenant.
    """
    if options.url is not None and options.profile is None:
        found = Destination(options.url, options.tenant, None)
    else:
        found = find_target(options.url, options.profile, options.tenant)
    return replace(found, url=address_of(found), tenant_id=tenant_of(found))


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="retain keys", description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    for name, does in (
        ("create", create),
        ("list", list_keys),
        ("change", change),
        ("rotate", rotate),
        ("revoke", revoke),
    ):
        command = commands.add_parser(name, help=does.__doc__)
        if does in (change, rotate, revoke):
            command.add_argument("key_id", help="as `list` shows it")
        if does in (create, change):
            command.add_argument("--name", required=does is create, help="what the key is for")
            command.add_argument(
                "--origin", action="append", help="whose pages may use it, such as https://shop.example"
            )
        if does is change:
            command.add_argument("--no-origins", action="store_true", help="let no page of another origin use it")
        if does is create:
            command.add_argument("--scope", required=True, action="append", choices=KEY_SCOPES)
            command.add_argument("--days", type=int, help="after how many it expires; never unless given")
        if does is rotate:
            command.add_argument("--grace-minutes", type=int, default=60, help="how long the old key stays valid (60)")
        command.add_argument("--url", help="the deployment's address")
        command.add_argument("--profile", help="a deployment of the file of profiles; its key needs the scope admin")
        command.add_argument("--tenant", help="its id; the profile's if absent")
        command.set_defaults(does=does)
    signing = commands.add_parser("signing-key", help=print_signing_key.__doc__)
    signing.set_defaults(prints=print_signing_key)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, connect: Connect = open_client) -> int:
    """Run a command; return the process's exit status."""
    options = parse(sys.argv[1:] if arguments is None else arguments)
    if "prints" in options:
        options.prints(options)
        return 0
    try:
        target = _destination(options)
    except RetainError as error:
        print(f"{error.message} ({error.code})", file=sys.stderr)
        return 1
    options.url, options.tenant = target.url, target.tenant_id
    options.root = "/admin" if target.key is None else "/v1"

    def connect_with_key(url: str) -> httpx.Client:
        client = connect(url)
        present(target, client)
        return client

    return run_command(options, connect_with_key)
