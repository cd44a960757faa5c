"""Derive the local configuration from wrangler.toml, so that production never carries development settings.

The differences: the offline runtime's flag, the Vectorize stand-in instead of the binding, no Workers AI, no limits of
rates, no routes (`wrangler dev` would send every request under the name of the first one), keys of applications, the
scripted chat model and the local embedding table, and the development environment (`retain.admin.access` says what that
allows).
"""

from __future__ import annotations

import base64
import json
import os
import secrets
from pathlib import Path
from typing import Any

from retain.cli.keys import new_signing_key
from tools.offline_runtime import COMPATIBILITY_FLAG
from tools.paths import LOCAL_CONFIG, PRODUCTION_CONFIG, ROOT, text_of
from tools.stage import local_variables, read_config

MAX_LOCAL_SHARDS = 8
"""As many indexes as the stand-in has (vectorize/stand_in/worker.js)."""
_VARS = {
    "RETAIN_ENVIRONMENT": "development",
    "APPLICATION_KEYS": "true",
    "GATEWAY_KEPT_SECONDS": "0",  # what was stored for the gateway takes effect at once
    "CHAT_PROVIDER": "scripted",
    "CHAT_MODEL": "scripted",
    "CHAT_BASE_URL": "",
    "EMBEDDING_PROVIDER": "static",
    "EMBEDDING_MODEL": "static-minilm-256",
    "EMBEDDING_DIMENSIONS": "256",
}


def local_config(
    production: dict[str, Any], overrides: dict[str, str] | None = None, shards: int | None = None
) -> dict[str, Any]:
    """Return the local configuration. overrides: variables that replace the local ones.

    shards: how many databases there are, each with a vector index; None for as many as $RETAIN_SHARDS says, or one.
    """
    shards = shards_wanted() if shards is None else shards
    config = {**production}
    config["compatibility_flags"] = [*production["compatibility_flags"], COMPATIBILITY_FLAG]
    config["vars"] = {**production["vars"], **_VARS, **(overrides or {})}
    config["services"] = [
        {"binding": "VECTORIZE", "service": "retain-vectorize"},
        *(
            {"binding": f"VECTORIZE_{number}", "service": "retain-vectorize", "entrypoint": f"Vectorize{number}"}
            for number in range(1, shards)
        ),
    ]
    config["d1_databases"] = [*production["d1_databases"], *map(_shard, range(1, shards))]
    config.pop("vectorize", None)
    config.pop("ai", None)
    config.pop("ratelimits", None)
    config.pop("routes", None)
    config.pop("route", None)
    return config


def shards_wanted() -> int:
    """Return how many databases the local server has. Raises: SystemExit for a number that is not possible."""
    given = os.environ.get("RETAIN_SHARDS", "1")
    if not given.isdecimal() or not 1 <= int(given) <= MAX_LOCAL_SHARDS:
        raise SystemExit(f"RETAIN_SHARDS must be a number from 1 to {MAX_LOCAL_SHARDS}")
    return int(given)


def _shard(number: int) -> dict[str, str]:
    """Return a further database of the local server."""
    return {
        "binding": f"DB_{number}",
        "database_name": f"retain-{number}",
        "database_id": f"00000000-0000-0000-0000-{number:012}",
        "migrations_dir": "migrations",
    }


def write_local_config(
    path: Path = LOCAL_CONFIG, *, overrides: dict[str, str] | None = None, shards: int | None = None
) -> Path:
    """Write the local configuration next to wrangler.toml, and development secrets if there are none yet.

    Only the owner may read the secrets (`.dev.vars`), even if somebody wrote the file with other permissions.
    """
    config = local_config(read_config(PRODUCTION_CONFIG), overrides, shards)
    build = path.with_suffix("").name.replace("wrangler.local", ".build-local").replace("wrangler.", ".build-")
    config["main"] = f"{build}/entry.py"
    if "assets" in config:
        config["assets"] = {**config["assets"], "directory": f"{build}-public"}
    config["build"] = {
        **config["build"],
        "command": f".venv/bin/python -m tools.stage --config {path.name} --target {build}",
    }
    text = json.dumps(config, indent=2) + "\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    write_secrets()
    return path


def write_secrets() -> None:
    """Make the development secrets that are not there yet. Raises: SystemExit when `.dev.vars` is not UTF-8."""
    secrets_file = ROOT / ".dev.vars"
    present = local_variables(secrets_file)
    known = text_of(secrets_file, secrets_file.name) if secrets_file.exists() else ""
    for name, make in (("CREDENTIALS_KEY", _random_key), ("MEMORY_KEY", _random_key), ("TOKEN_KEY", new_signing_key)):
        if name not in present:
            known = f"{known.rstrip()}\n" if known.strip() else ""
            known += f"{name}={make()}\n"
            _write_private(secrets_file, known)
    if secrets_file.exists():
        secrets_file.chmod(0o600)


def _random_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def _write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, from its first byte on."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as sink:
        sink.write(text)
    partial.rename(path)
