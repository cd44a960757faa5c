"""Create the vector index on Cloudflare: `python -m vectorize.provision`.

Without `--apply` it prints the commands for an account without the index, and sends Cloudflare nothing. With `--apply`
it reads the account's state and runs only the missing commands, so it may be repeated. It never deletes anything.

Source: https://developers.cloudflare.com/vectorize/reference/wrangler-commands/
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vectorize.specification import IndexSpecification, MetadataIndex, SpecificationError, read_specification

WRANGLER = ("npx", "wrangler", "vectorize")

Command = tuple[str, ...]
Run = Callable[[Command], str]
"""Runs a command and returns what it printed; raises ProvisioningError when it fails."""


class ProvisioningError(Exception):
    """The index cannot be created as specified."""


@dataclass(frozen=True, slots=True)
class Existing:
    """An index in an account: its dimensions and metric, None when it does not exist; its metadata indexes."""

    dimensions: int | None = None
    metric: str | None = None
    metadata_indexes: Mapping[str, str] = field(default_factory=dict)


def plan(specification: IndexSpecification, existing: Existing) -> list[Command]:
    """Return the missing commands, in order: the index, then its metadata indexes.

    Raises: ProvisioningError when something exists that differs and cannot be changed.
    """
    commands: list[Command] = []
    name = specification.name
    if existing.dimensions is None:
        commands.append(
            (*WRANGLER, "create", name, f"--dimensions={specification.dimensions}", f"--metric={specification.metric}")
        )
    elif (existing.dimensions, existing.metric) != (specification.dimensions, specification.metric):
        raise ProvisioningError(
            f"{name} exists with {existing.dimensions} dimensions and metric {existing.metric}, specified are "
            f"{specification.dimensions} and {specification.metric}. An index keeps both permanently: "
            "choose another --name, bind it in wrangler.toml, and reindex."
        )
    for one in specification.metadata_indexes:
        present = existing.metadata_indexes.get(one.property)
        if present is None:
            commands.append(
                (*WRANGLER, "create-metadata-index", name, f"--property-name={one.property}", f"--type={one.type}")
            )
        elif present != one.type:
            remedy = shlex.join((*WRANGLER, "delete-metadata-index", name, f"--property-name={one.property}"))
            raise ProvisioningError(
                f"the metadata index on {one.property} exists with type {present}, specified is {one.type}: "
                f"delete it with `{remedy}`, run this again, and reindex."
            )
    return commands


def own_index(declared: str) -> MetadataIndex:
    """Return the metadata index for a name of memories' metadata, as `customer:string`.

    Raises: SpecificationError for a type that is not one, once it is part of a specification.
    """
    name, _, kind = declared.partition(":")
    return MetadataIndex(f"meta_{name}", kind, "The deployment filters by it.")


def look(name: str, run: Run) -> Existing:
    """Return the index's state in the account.

    Raises: ProvisioningError.
    """
    found = [one for one in _listed(run, (*WRANGLER, "list", "--json")) if one.get("name") == name]
    if not found:
        return Existing()
    config = found[0].get("config") or {}
    listed = _listed(run, (*WRANGLER, "list-metadata-index", name, "--json"))
    return Existing(
        dimensions=config.get("dimensions"),
        metric=config.get("metric"),
        metadata_indexes={one["propertyName"]: str(one["indexType"]).lower() for one in listed},
    )


def apply(specification: IndexSpecification, run: Run, say: Callable[[str], object]) -> None:
    """Run the missing commands, reporting each one.

    Raises: ProvisioningError; earlier commands keep their effect, and a repeated call runs the rest.
    """
    existing = look(specification.name, run)
    commands = plan(specification, existing)
    for command in commands:
        say(shlex.join(command))
        run(command)
    if not commands:
        say(f"{specification.name} is as specified: nothing to do.")
    elif existing.dimensions is not None:
        say("Vectors written earlier are not in the new metadata indexes: reindex every tenant.")


def run_wrangler(command: Command) -> str:
    """Run the command; return its standard output.

    Raises: ProvisioningError with its standard error.
    """
    try:
        done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True)  # noqa: S603 -- a list, no shell
    except FileNotFoundError as error:
        raise ProvisioningError(f"{command[0]} is not installed") from error
    except subprocess.CalledProcessError as error:
        raise ProvisioningError(f"`{shlex.join(command)}` failed:\n{error.stderr or error.stdout}") from error
    return done.stdout


def main(arguments: Sequence[str] | None = None, run: Run = run_wrangler) -> int:
    """Provision the index that the command line specifies; return the exit status."""
    specified = read_specification()
    parser = argparse.ArgumentParser(
        prog="python -m vectorize.provision", description="Create the index on Cloudflare."
    )
    parser.add_argument("--name", default=specified.name, help="of the index (%(default)s)")
    parser.add_argument(
        "--dimensions", type=int, default=specified.dimensions, help="those of the embedding model (%(default)s)"
    )
    parser.add_argument(
        "--filter",
        action="append",
        default=[],
        metavar="NAME:TYPE",
        help="a name of memories' metadata to filter by, as in VECTOR_FILTERS; may be repeated",
    )
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--dry-run", action="store_true", help="only print the commands (the default)")
    mode.add_argument(
        "--apply", action="store_true", help="run the missing commands in the account of wrangler's login"
    )
    options = parser.parse_args(arguments)
    try:
        specification = replace(
            specified,
            name=options.name,
            dimensions=options.dimensions,
            metadata_indexes=(*specified.metadata_indexes, *map(own_index, options.filter)),
        )
        if options.apply:
            apply(specification, run, _say)
        else:
            for command in plan(specification, Existing()):
                _say(shlex.join(command))
    except (ProvisioningError, SpecificationError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


def _listed(run: Run, command: Command) -> list[dict[str, Any]]:
    output = run(command)
    try:
        # Wrangler may print notices first.
        listed = json.loads(output[output.index("[") :])
    except ValueError as error:
        raise ProvisioningError(f"`{shlex.join(command)}` printed no list:\n{output}") from error
    return [one for one in listed if isinstance(one, dict)]


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    raise SystemExit(main())
