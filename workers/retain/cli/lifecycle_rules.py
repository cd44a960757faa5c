"""Print the life cycle rules of the cold tier's bucket, derived from the placement of data types.

    retain lifecycle-rules > lifecycle.json
    npx wrangler r2 bucket lifecycle set retain --file lifecycle.json

The placements are the matrix, as changed by MEMORY_PLACEMENTS of wrangler.toml, or by --placements instead.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Sequence

from retain.cli.project import require_project
from retain.errors import Misconfigured
from retain.items.placement import lifecycle_rules, read_placements


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rules; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="retain lifecycle-rules", description="Print the life cycle rules of the cold tier's R2 bucket."
    )
    parser.add_argument("--placements", help="JSON, instead of MEMORY_PLACEMENTS in wrangler.toml")
    given = parser.parse_args(arguments).placements
    try:
        rules = lifecycle_rules(read_placements(_configured() if given is None else given))
    except Misconfigured as error:
        print(error.message, file=sys.stderr)
        return 2
    print(json.dumps(rules, indent=2))
    return 0


def _configured() -> str:
    """Return MEMORY_PLACEMENTS of the project, or "". Raises: Misconfigured."""
    path = require_project().production_config
    try:
        text = tomllib.loads(path.read_text(encoding="utf-8")).get("vars", {}).get("MEMORY_PLACEMENTS", "")
    except (OSError, ValueError, AttributeError) as error:
        raise Misconfigured(f"{path} cannot be read: {error}", code="invalid_placement") from error
    if not isinstance(text, str):
        raise Misconfigured(f"MEMORY_PLACEMENTS in {path} is not a text", code="invalid_placement")
    return text
