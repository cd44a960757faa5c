"""Print the life cycle of the cold tier's bucket, as it follows from the placement of data types.

    python -m tools.lifecycle_rules > lifecycle.json
    npx wrangler r2 bucket lifecycle set retain --file lifecycle.json

The placements are the matrix with what MEMORY_PLACEMENTS of wrangler.toml changes, or --placements instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tools.paths import PRODUCTION_CONFIG, ROOT
from tools.stage import read_config

sys.path.insert(0, str(ROOT / "workers"))

from retain.errors import Misconfigured
from retain.items.placement import lifecycle_rules, read_placements


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the rules; return the exit code."""
    parser = argparse.ArgumentParser(description="Print the life cycle rules of the cold tier's R2 bucket.")
    parser.add_argument("--placements", help="JSON, instead of MEMORY_PLACEMENTS in wrangler.toml")
    given = parser.parse_args(arguments).placements
    text = read_config(PRODUCTION_CONFIG).get("vars", {}).get("MEMORY_PLACEMENTS", "") if given is None else given
    try:
        rules = lifecycle_rules(read_placements(text))
    except Misconfigured as error:
        print(error.message, file=sys.stderr)
        return 2
    print(json.dumps(rules, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
