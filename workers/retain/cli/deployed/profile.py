"""Which deployment a command asks, with what key: from the command line, the environment, or the file of profiles.

    default = "staging"

    [profiles.staging]
    url = "https://retain-staging.example.workers.dev"
    tenant = "acme"
    key_command = ["pass", "show", "retain/staging"]

A key is only ever sent to the address that it was given with: `--url` takes no key from a profile, and `--profile` none
from the environment.
"""

from __future__ import annotations

import os
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from retain.errors import InvalidInput
from retain.errors.codes import ForeignCode

KEY_COMMAND_SECONDS = 60
"""How long a command that prints a key may take: a password manager may ask first."""


@dataclass(frozen=True, slots=True)
class Destination:
    """A deployment. tenant_id, key: None where none is named; without a key, Access's service token is sent if any."""

    url: str
    tenant_id: str | None
    key: str | None = field(repr=False)


class _Profile(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    url: str
    tenant: str | None = None
    key: str | None = Field(default=None, repr=False)
    key_command: list[str] | None = Field(default=None, min_length=1)


class _Profiles(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    default: str | None = None
    profiles: dict[str, _Profile] = Field(default_factory=dict)


def profiles_path(environment: Mapping[str, str]) -> Path:
    """Return where the profiles are. Source: https://specifications.freedesktop.org/basedir-spec/latest/."""
    folder = Path(environment.get("XDG_CONFIG_HOME", ""))
    return (folder if folder.is_absolute() else Path.home() / ".config") / "retain" / "profiles.toml"


def find_target(
    url: str | None, profile: str | None, tenant_id: str | None, environment: Mapping[str, str] | None = None
) -> Destination:
    """Return the deployment to ask: `--url`, else `--profile`, `RETAIN_URL`, `RETAIN_PROFILE`, or the default profile.

    `RETAIN_KEY` is the key of `--url` and `RETAIN_URL`. environment: of the process, if absent.
    Raises: InvalidInput when none is named, or the profile cannot be used.
    """
    environment = os.environ if environment is None else environment
    if url is not None and profile is not None:
        raise InvalidInput("give --url or --profile, not both", code=ForeignCode("usage"))
    address = url or (None if profile else environment.get("RETAIN_URL"))
    if address:
        return Destination(
            address, tenant_id or environment.get("RETAIN_TENANT"), environment.get("RETAIN_KEY") or None
        )
    path = profiles_path(environment)
    kept = _read(path)
    name = profile or environment.get("RETAIN_PROFILE") or kept.default
    if name is None:
        raise InvalidInput(f"name a deployment: --url, --profile, RETAIN_URL, or {path}", code=ForeignCode("usage"))
    if name not in kept.profiles:
        raise InvalidInput(f"{path} has no profile {name!r}", code=ForeignCode("no_such_profile"))
    chosen = kept.profiles[name]
    return Destination(chosen.url, tenant_id or chosen.tenant, _key(chosen, name))


def _read(path: Path) -> _Profiles:
    try:
        with path.open("rb") as file:
            readable_by_others = os.name == "posix" and os.fstat(file.fileno()).st_mode & 0o077
            kept = _Profiles.model_validate(tomllib.load(file))
    except FileNotFoundError:
        return _Profiles()
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"{path}: {where}: {first['msg']}", code=ForeignCode("invalid_profiles")) from error
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {error}", code=ForeignCode("invalid_profiles")) from error
    # A command is executed, so nobody else may write one; a key is secret.
    if readable_by_others:
        raise InvalidInput(f"others can read {path}: chmod 600 it", code=ForeignCode("profiles_not_private"))
    return kept


def _key(profile: _Profile, name: str) -> str | None:
    if profile.key_command is None:
        return profile.key
    if profile.key is not None:
        raise InvalidInput(f"profile {name!r} has both key and key_command", code=ForeignCode("invalid_profiles"))
    try:
        done = subprocess.run(
            profile.key_command, stdout=subprocess.PIPE, text=True, check=True, timeout=KEY_COMMAND_SECONDS
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        reason = type(error).__name__
        raise InvalidInput(
            f"the key_command of profile {name!r} failed: {reason}", code=ForeignCode("no_key")
        ) from error
    key = done.stdout.strip()
    if not key:
        raise InvalidInput(f"the key_command of profile {name!r} printed no key", code=ForeignCode("no_key"))
    return key
