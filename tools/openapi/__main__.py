"""Print the document."""

from __future__ import annotations

import json

from tools.openapi.document import document

print(json.dumps(document(), indent=1))
