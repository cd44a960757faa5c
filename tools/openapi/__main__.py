"""Print the document."""

from __future__ import annotations

import argparse
import json

from tools.openapi.document import document, with_plain_problems

parser = argparse.ArgumentParser(prog="python -m tools.openapi", description="the OpenAPI document")
parser.add_argument(
    "--plain-problems",
    action="store_true",
    help="one schema for every problem, without the codes of each route: for generators that write a class for each schema",
)
options = parser.parse_args()
print(json.dumps(with_plain_problems(document()) if options.plain_problems else document(), indent=1))
