"""What is served without the Worker: the OpenAPI document, the page that shows it, and the console.

Cloudflare serves them from the edge, with their ETags, and workerd does the same offline. Neither asks who wants them.
Source: https://developers.cloudflare.com/workers/static-assets/
"""

from __future__ import annotations

import json
from pathlib import Path

from tools.console import console_files
from tools.paths import ROOT

PUBLIC = ROOT / "public"
SWAGGER_UI = ROOT / "node_modules" / "swagger-ui-dist"
_OF_SWAGGER_UI = ("swagger-ui.css", "swagger-ui-bundle.js", "LICENSE", "NOTICE")


def public_files() -> dict[str, bytes]:
    """Return the files by their paths. Raises: SystemExit without the installed packages of node."""
    # Imported here because the document is made from every route: who stages only the Worker does not wait for it.
    from tools.openapi import document

    if not SWAGGER_UI.exists():
        raise SystemExit("swagger-ui-dist is not installed: run `make setup`")
    own = {path.relative_to(PUBLIC).as_posix(): path.read_bytes() for path in PUBLIC.rglob("*") if path.is_file()}
    renderer = {f"openapi/{name}": (SWAGGER_UI / name).read_bytes() for name in _OF_SWAGGER_UI}
    text = json.dumps(document(), separators=(",", ":"), ensure_ascii=False)
    return {**own, **renderer, **console_files(), "openapi.json": text.encode()}


def folder_of(staged: Path) -> Path:
    """Return where the files for a staged Worker are written: next to it, so that they are not uploaded with it."""
    return staged.with_name(f"{staged.name}-public")
