"""Write the folder of a node: `python -m tools.cluster.write FOLDER --bucket s3://name/prefix --key-file FILE`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.cluster.configuration import Bucket, Cluster, node_files
from tools.offline_runtime import COMPATIBILITY_FLAG
from tools.paths import PRODUCTION_CONFIG
from tools.stage import local_variables, mirror, read_config

MIN_KEY_CHARACTERS = 32


def cluster_config(production: dict[str, Any], settings: dict[str, str]) -> dict[str, Any]:
    """Return the configuration of the Worker on nodes: production's, with settings that replace its variables.

    Python comes from the packages, not from Cloudflare's servers. There is no Workers AI and no Vectorize: the embedding
    model is the local table unless the settings name another one.
    Raises: SystemExit for a setting that is not a variable of `wrangler.toml`.
    """
    if unknown := sorted(settings.keys() - production["vars"].keys()):
        raise SystemExit(f"wrangler.toml has no variable {', '.join(unknown)}")
    local = {"EMBEDDING_PROVIDER": "static", "EMBEDDING_MODEL": "static-minilm-256", "EMBEDDING_DIMENSIONS": "256"}
    flags = [*production["compatibility_flags"], COMPATIBILITY_FLAG]
    return {**production, "compatibility_flags": flags, "vars": {**production["vars"], **local, **settings}}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the folder; return the exit status. Raises: SystemExit for what is wrong in the command or its files."""
    parser = argparse.ArgumentParser(prog="python -m tools.cluster.write", description="Write the folder of a node.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bucket", required=True, help="s3://name/prefix or gs://name/prefix")
    parser.add_argument("--bucket-option", action="append", default=[], metavar="KEY=VALUE", help="as aws_endpoint=…")
    parser.add_argument("--key-file", type=Path, required=True, help="the secret that only the nodes know, in a file")
    parser.add_argument("--settings", type=Path, help="variables that replace those of wrangler.toml, one per line")
    wanted = parser.parse_args(arguments)
    if not wanted.bucket.startswith(("s3://", "gs://")):
        parser.error(f"--bucket must be s3://name/prefix or gs://name/prefix, not {wanted.bucket!r}")
    for file in filter(None, (wanted.key_file, wanted.settings)):
        if not file.exists():
            parser.error(f"there is no file {file}")
    key = wanted.key_file.read_text().strip()
    if len(key) < MIN_KEY_CHARACTERS:
        parser.error(f"the key has {len(key)} characters and needs {MIN_KEY_CHARACTERS}: openssl rand -hex 32")
    settings = local_variables(wanted.settings) if wanted.settings else {}
    config = cluster_config(read_config(PRODUCTION_CONFIG), settings)
    files = node_files(config, Cluster(Bucket(wanted.bucket, tuple(wanted.bucket_option)), key))
    os.umask(0o077)  # the configuration has the key
    changed = mirror(files, wanted.folder)
    print(f"{wanted.folder}: {changed} files changed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
