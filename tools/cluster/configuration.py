"""The configuration of a node: the Worker with its stores, as services of workerd that share one bucket.

KV, D1 and cron triggers are Workers that workerd brings with it; each database, namespace and schedule is a Durable
Object, which one node of the cluster owns. R2 is the Worker of Miniflare, and the vector index the stand-in of
`vectorize/`, both as Durable Objects too. Large values are objects in the bucket.
Source: `workerd.capnp` of the npm package workerd, `ClusterConfig` and `Module.bundled`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tools.cluster.capnp_text import Embedded, Value, text_of
from tools.cluster.migrations import migration_list
from tools.offline_runtime import prepare
from tools.paths import NODE_BIN, ROOT, STAND_IN_CONFIG
from tools.public_files import public_files
from tools.pyodide_bundle import BUNDLE_NAME
from tools.stage import read_config, wanted_files, with_compiled
from tools.worker_modules import module_kind, python_packages

WORKERS = ROOT / "deploy" / "cluster"
MINIFLARE = NODE_BIN.parent / "miniflare" / "dist" / "src" / "workers"
SECRETS = (
    "CREDENTIALS_KEY",
    "PREVIOUS_CREDENTIALS_KEY",
    "MEMORY_KEY",
    "PREVIOUS_MEMORY_KEY",
    "TOKEN_KEY",
    "CHAT_API_KEY",
    "OTLP_HEADERS",
    "OPENAI_API_KEY",
    "ANTHROPIC_API_KEY",
    "EMBEDDING_API_KEY",
)
"""What a node reads from its environment; an absent one is null in the Worker."""
_OBJECTS = {"localDisk": "objects"}
_PLAIN: dict[str, Value] = {"compatibilityDate": "2026-11-01"}
_MINIFLARE: dict[str, Value] = {
    "compatibilityDate": "2023-07-24",
    "compatibilityFlags": ["nodejs_compat", "experimental"],
}
"""What Miniflare runs its own Workers with."""


@dataclass(frozen=True)
class Bucket:
    """The bucket that the nodes share. url: `s3://bucket/prefix`. options: `key=value`, of `ClusterConfig.bucketOptions`."""

    url: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Cluster:
    """What all nodes have in common. key: at least 32 characters that only the nodes know."""

    bucket: Bucket
    key: str


def node_files(config: dict[str, Any], cluster: Cluster) -> dict[str, bytes]:
    """Return the content of a node's folder: `config.capnp` and what it embeds. config: a wrangler configuration."""
    own = with_compiled(wanted_files(config), compiled=True)
    staged = {f"retain/{name}": content for name, content in own.items()}
    packages = python_packages()
    stand_in = {
        f"vectors/{path.name}": path.read_bytes()
        for path in sorted((ROOT / "vectorize" / "stand_in").iterdir())
        if path.suffix in (".js", ".wasm")
    }
    r2 = {f"r2/{path.name}": path.read_bytes() for path in sorted((MINIFLARE / "r2").glob("bucket.worker.js"))}
    r2 |= {f"r2/{path.name}": path.read_bytes() for path in sorted((MINIFLARE / "shared").glob("*.worker.js"))}
    site = public_files()
    written: dict[str, Value] = {
        "services": [
            *_stores(),
            _vectors(list(stand_in)),
            _migrations(),
            _retain(config, [*staged, *packages]),
            _cron(config),
            {"name": "site", "assets": {"path": "public", "userWorker": "retain", "config": _rules_of(site)}},
            {"name": "objects", "disk": {"writable": True}},
            {"name": "internet", "network": {"allow": ["public", "private"], "tlsOptions": {"trustBrowserCas": True}}},
        ],
        "sockets": [
            {"name": "http", "http": {}, "service": "site"},
            {"name": "migrate", "http": {}, "service": "migrations"},
        ],
        "extensions": [
            {
                "modules": [
                    {"name": "miniflare:shared", "esModule": Embedded("r2/index.worker.js")},
                    {"name": "miniflare:zod", "esModule": Embedded("r2/zod.worker.js")},
                ]
            }
        ],
        "cluster": {
            "bucket": cluster.bucket.url,
            "bucketOptions": list(cluster.bucket.options),
            "key": cluster.key,
        },
    }
    text = f'using Workerd = import "/workerd/workerd.capnp";\nconst config :Workerd.Config = {text_of(written)};\n'
    return {
        **staged,
        **packages,
        **stand_in,
        **r2,
        **{f"public/{name}": content for name, content in site.items()},
        **{path.name: path.read_bytes() for path in sorted(WORKERS.glob("*.mjs"))},
        f"pyodide/{BUNDLE_NAME}": prepare().with_name(BUNDLE_NAME).read_bytes(),
        "migrations.json": json.dumps(migration_list(ROOT / "migrations")).encode(),
        "config.capnp": text.encode(),
    }


def _rules_of(site: Mapping[str, bytes]) -> str:
    """Return the headers and the redirects of the static files, which workerd reads here and not in their folder."""
    return json.dumps({"headers": site["_headers"].decode(), "redirects": site["_redirects"].decode()})


def _stores() -> list[Value]:
    """Return the services of KV, D1 and R2."""
    return [
        {"name": "kv-blobs", "bucket": {"path": "kv"}},
        {
            "name": "kv",
            "worker": {
                **_PLAIN,
                "modules": [{"name": "kv.js", "bundled": "/workerd/kv.js"}],
                **_objects("KVNamespace"),
                "bindings": [
                    {"name": "SHARD", "durableObjectNamespace": "KVNamespace"},
                    {"name": "BLOBS", "service": "kv-blobs"},
                    {"name": "CLUSTERED", "json": "true"},
                ],
            },
        },
        {
            "name": "d1",
            "worker": {
                **_PLAIN,
                "modules": [{"name": "d1.js", "bundled": "/workerd/d1.js"}],
                **_objects("D1Database"),
                "bindings": [{"name": "DATABASE", "durableObjectNamespace": "D1Database"}],
            },
        },
        {"name": "r2-blobs", "bucket": {"path": "r2"}},
        {
            "name": "r2-buckets",
            "worker": {
                **_MINIFLARE,
                "modules": [_module("r2/bucket.worker.js", "bucket.worker.js")],
                **_objects("R2BucketObject"),
                "bindings": [{"name": "MINIFLARE_BLOBS", "service": "r2-blobs"}],
            },
        },
        {
            "name": "r2",
            "worker": {
                **_MINIFLARE,
                "modules": [_module("r2/object-entry.worker.js", "object-entry.worker.js")],
                "bindings": [
                    {
                        "name": "MINIFLARE_OBJECT",
                        "durableObjectNamespace": {"className": "R2BucketObject", "serviceName": "r2-buckets"},
                    }
                ],
            },
        },
    ]


def _vectors(modules: Sequence[str]) -> Value:
    entry_first = sorted(modules, key=lambda path: (path != "vectors/worker.js", path))
    return {
        "name": "vectors",
        "worker": {
            **_PLAIN,
            "modules": [_module(path, path.removeprefix("vectors/")) for path in entry_first],
            **_objects("StandInIndex"),
            "bindings": [
                {"name": "INDEX", "durableObjectNamespace": "StandInIndex"},
                *_variables(read_config(STAND_IN_CONFIG)["vars"]),
            ],
        },
    }


def _migrations() -> Value:
    return {
        "name": "migrations",
        "worker": {
            **_PLAIN,
            "modules": [
                _module("migrations.mjs"),
                {"name": "migrations.json", "json": Embedded("migrations.json")},
            ],
            "bindings": [_database()],
        },
    }


def _retain(config: dict[str, Any], modules: Sequence[str]) -> Value:
    own = sorted((m for m in modules if m.startswith("retain/")), key=lambda m: (m != "retain/entry.py", m))
    packages = [m for m in modules if m.startswith("python_modules/")]
    objects = config["durable_objects"]["bindings"]
    return {
        "name": "retain",
        "worker": {
            "compatibilityDate": config["compatibility_date"],
            "compatibilityFlags": config["compatibility_flags"],
            "modules": [*(_module(path, path.removeprefix("retain/")) for path in own), *map(_module, packages)],
            **_objects(*(each["class_name"] for each in objects)),
            "bindings": [
                *({"name": each["name"], "durableObjectNamespace": each["class_name"]} for each in objects),
                _database(),
                {"name": "KV", "kvNamespace": _with_props("kv", {"namespace": "retain"})},
                {"name": "COLD", "r2Bucket": _with_props("r2", {"MINIFLARE_NAMESPACE": "retain"})},
                {"name": "VECTORIZE", "service": "vectors"},
                *_variables(config["vars"]),
                *({"name": name, "fromEnvironment": name} for name in SECRETS),
            ],
        },
    }


def _cron(config: dict[str, Any]) -> Value:
    return {
        "name": "cron",
        "worker": {
            **_PLAIN,
            "compatibilityFlags": ["service_binding_extra_handlers", "experimental"],
            "modules": [{"name": "cron.js", "bundled": "/workerd/cron.js"}],
            **_objects("Schedule"),
            "bindings": [
                {"name": "SCHEDULE", "durableObjectNamespace": "Schedule"},
                {"name": "CRONS", "json": json.dumps({"RETAIN": config["triggers"]["crons"]})},
                {"name": "RETAIN", "service": "retain"},
            ],
        },
    }


def _objects(*classes: str) -> dict[str, Value]:
    """Return a Worker's Durable Objects, with SQLite, on the node's disk and in the bucket."""
    namespaces: list[Value] = [{"className": name, "uniqueKey": name, "enableSql": True} for name in classes]
    return {"durableObjectNamespaces": namespaces, "durableObjectStorage": _OBJECTS}


def _database() -> Value:
    fetcher: Value = {"name": "fetcher", "service": _with_props("d1", {"database": "retain"})}
    return {"name": "DB", "wrapped": {"moduleName": "cloudflare-internal:d1-api", "innerBindings": [fetcher]}}


def _with_props(service: str, props: Mapping[str, str]) -> Value:
    return {"name": service, "props": {"json": json.dumps(props)}}


def _variables(variables: Mapping[str, Any]) -> list[Value]:
    return [
        {"name": name, "text": value} if isinstance(value, str) else {"name": name, "json": json.dumps(value)}
        for name, value in variables.items()
    ]


def _module(path: str, name: str = "") -> Value:
    return {"name": name or path, module_kind(path): Embedded(path)}
