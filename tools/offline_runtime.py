"""Make the real workerd run Python without Cloudflare's CDN, and the local server believe no client's claims.

workerd has an option for the folder of Pyodide bundles, which `wrangler dev` does not pass on; but Miniflare starts the
program that `MINIFLARE_WORKERD_PATH` names: here, a wrapper that adds the option. Nothing here is part of production.
"""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

from tools.paths import CACHE, NODE_BIN, ROOT
from tools.pyodide_bundle import LIBRARY_NAME, build
from tools.standard_library import with_bytecode

COMPATIBILITY_FLAG = "python_workers_development"
"""The flag that makes workerd load its bundle only from the folder."""


LOCAL_ENTRY = ROOT / "tools" / "local_entry.cjs"
"""What is loaded into wrangler: it says what for."""


def prepare() -> Path:
    """Build the bundle and the wrapper unless they exist, and return the wrapper's path."""
    package, kept = ROOT / "node_modules" / "pyodide", CACHE / "pyodide"
    bundle = build(package, with_bytecode(package / LIBRARY_NAME, kept), kept)
    workerd = (NODE_BIN / "workerd").resolve()
    wrapper = bundle / "workerd"
    script = (
        f'#!/bin/sh\ncommand="$1"; shift\nexec "{workerd}" "$command" --pyodide-bundle-disk-cache-dir="{bundle}" "$@"\n'
    )
    if not wrapper.exists() or wrapper.read_text() != script:
        partial = wrapper.with_name(f"workerd.{os.getpid()}")
        partial.write_text(script)
        partial.chmod(partial.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
        partial.rename(wrapper)
    return wrapper


def environment() -> dict[str, str]:
    """Return the environment in which wrangler starts the offline runtime."""
    return {
        **os.environ,
        "PATH": f"{NODE_BIN}{os.pathsep}{os.environ['PATH']}",
        "MINIFLARE_WORKERD_PATH": str(prepare()),
        "NODE_OPTIONS": f"{os.environ.get('NODE_OPTIONS', '')} --require {_quoted(LOCAL_ENTRY)}".strip(),
        # What Node.js compiled of wrangler is read by its next start. Source: https://nodejs.org/api/module.html#module-compile-cache
        "NODE_COMPILE_CACHE": str(CACHE / "node"),
        "WRANGLER_SEND_METRICS": "false",
        "NO_UPDATE_NOTIFIER": "1",
        "CI": "1",
        **_config_home(),
    }


def _config_home() -> dict[str, str]:
    """Return where wrangler keeps its logs and settings, if this user cannot have them in the usual place.

    Without a folder it ends: the user of a container may have a home that is not theirs.
    Source: https://github.com/cloudflare/workers-sdk/blob/main/packages/workers-utils/src/global-wrangler-config-path.ts
    """
    usual = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / ".wrangler"
    # Not `Path.exists`, which fails where this user may not look.
    exists = next(path for path in (usual, *usual.parents) if os.path.exists(path))  # noqa: PTH110
    return {} if exists == usual or os.access(exists, os.W_OK) else {"XDG_CONFIG_HOME": str(CACHE / "config")}


def _quoted(path: Path) -> str:
    """Return a path for `NODE_OPTIONS`: it may have a space in it, and letters of any alphabet, which stay as they are.

    Source: https://nodejs.org/api/cli.html#node_optionsoptions
    """
    return json.dumps(str(path), ensure_ascii=False)
