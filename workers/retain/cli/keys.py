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
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from retain.application_keys.scope import KEY_SCOPES
from retain.cli.administrator import Connect, open_client
from retain.cli.deployed.connection import Deployment, add_target, named_target, print_json, run_deployed
from retain.cli.deployed.profile import Destination
from retain.cli.deployed.terminal import one_line
from retain.identifiers import check_id

_MOST = 10_000


def create(options: argparse.Namespace, deployment: Deployment) -> int:
    """Create a key, and print it."""
    body = {"name": options.name, "scopes": options.scope, "origins": options.origin or [], "days": options.days}
    _print_new(options, deployment.ask("POST", _keys_of(deployment), body))
    return 0


def list_keys(options: argparse.Namespace, deployment: Deployment) -> int:
    """Print the keys, the newest first, a line for each: also those that are no longer valid."""
    for key in deployment.listed(_keys_of(deployment), "keys", {}, _MOST):
        _print(options, key)
    return 0


def change(options: argparse.Namespace, deployment: Deployment) -> int:
    """Change a key's name, or the origins whose pages may use it: those given replace the ones that it had."""
    origins = [] if options.no_origins else options.origin
    body = {name: value for name, value in (("name", options.name), ("origins", origins)) if value is not None}
    _print(options, deployment.ask("PATCH", f"{_keys_of(deployment)}/{check_id(options.key_id)}", body))
    return 0


def rotate(options: argparse.Namespace, deployment: Deployment) -> int:
    """Create a key like another one, which stays valid for a while, and print the new one."""
    path = f"{_keys_of(deployment)}/{check_id(options.key_id)}/rotate"
    answer = deployment.ask("POST", path, {"grace_minutes": options.grace_minutes})
    _print_new(options, answer)
    if not options.json:
        print(_line(answer["replaces"]), file=sys.stderr)
    return 0


def revoke(options: argparse.Namespace, deployment: Deployment) -> int:
    """Revoke a key. It may still work for ten seconds."""
    _print(options, deployment.ask("DELETE", f"{_keys_of(deployment)}/{check_id(options.key_id)}"))
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


def _print(options: argparse.Namespace, key: Mapping[str, Any]) -> None:
    print_json(key) if options.json else print(_line(key))


def _print_new(options: argparse.Namespace, key: Mapping[str, Any]) -> None:
    """Print a key's text alone on standard output, or as JSON all that is known of it, with the text as `key`."""
    if options.json:
        print_json(key)
        return
    print(f"{_line(key)}; it is shown only now:", file=sys.stderr)
    print(key["key"])


def _line(key: Mapping[str, Any]) -> str:
    reported = [f"{key['key_id']} {key['name']}: {', '.join(key['scopes'] + key['origins'])}"]
    for field, what in (("last_used_at_ms", "last used"), ("expires_at_ms", "expires"), ("revoked_at_ms", "revoked")):
        if key[field] is not None:
            reported.append(f"{what} {datetime.fromtimestamp(key[field] / 1000, UTC):%Y-%m-%d %H:%M} UTC")
    return one_line(", ".join(reported))


def _keys_of(deployment: Deployment) -> str:
    return f"{deployment.tenant}/keys"


def _target_of(options: argparse.Namespace) -> Destination:
    """Return the deployment that is meant. With `--url` the caller is an operator: the key of the environment is not sent.

    Raises: InvalidInput when none is named.
    """
    if options.url is not None and options.profile is None:
        return Destination(options.url, options.tenant or os.environ.get("RETAIN_TENANT"), None)
    return named_target(options)


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
        add_target(command)
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
    return run_deployed(options, connect, _target_of)
