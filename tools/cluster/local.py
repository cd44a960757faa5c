"""A cluster on this machine, with the local configuration and a bucket in memory."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.cluster.bucket import serving_bucket
from tools.cluster.configuration import Cluster, node_files
from tools.cluster.nodes import Node, serving_nodes
from tools.local_config import local_config, write_local_config
from tools.paths import DEVELOPMENT_VARIABLES, PRODUCTION_CONFIG
from tools.stage import local_variables, read_config


@contextmanager
def local_cluster(folder: Path, count: int, *, first_port: int | None = None) -> Iterator[list[Node]]:
    """Serve a cluster until the block ends, with what `.dev.vars` says. first_port: of the first node, the next ones follow.

    Raises: SystemExit when the bucket's server or a node does not start.
    """
    write_local_config()
    production, own = read_config(PRODUCTION_CONFIG), local_variables(DEVELOPMENT_VARIABLES)
    config = local_config(production, {name: value for name, value in own.items() if name in production["vars"]})
    with serving_bucket(folder / "bucket.log") as bucket:
        files = node_files(config, Cluster(bucket, secrets.token_hex(32)))
        with serving_nodes(folder, files, count, environment={**os.environ, **own}, first_port=first_port) as nodes:
            yield nodes
