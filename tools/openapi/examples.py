"""Examples of request bodies, by the names of their operations. A test sends each of them."""

from __future__ import annotations

from collections.abc import Mapping

EXAMPLES: Mapping[str, object] = {
    "create_run": {"input": "Where is order 1042?", "instance_id": "desk"},
}
