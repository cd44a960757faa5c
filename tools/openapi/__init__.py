"""The OpenAPI 3.1 document of the Worker, from the route tables: `python -m tools.openapi > openapi.json`.

Nothing in it is written by hand except the examples. An operation lists every status that its route can answer with, and
every code of each.
Source: https://spec.openapis.org/oas/v3.1.0
"""

from __future__ import annotations

from tools.openapi.codes import PROBLEM, STATUSES, codes_of
from tools.openapi.document import document, operations
from tools.openapi.operation import public_path

__all__ = ["PROBLEM", "STATUSES", "codes_of", "document", "operations", "public_path"]
