"""The services of a bare workerd, as its configuration describes them: Workers, stores and what they are bound to.

Source: https://github.com/cloudflare/workerd/blob/main/src/workerd/server/workerd.capnp
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tools.worker_modules import module_kind

JAVASCRIPT_DATE = "2026-11-01"
"""The compatibility date of Workers in JavaScript, which is also that of wrangler.toml."""
DATABASE = KV_NAMESPACE = "bench"


@dataclass(frozen=True, slots=True)
class Service:
    """One service of the configuration.

    text: its value in Cap'n Proto. files: what the text embeds, by path in the folder of the configuration.
    called: whether it is called over HTTP, on a port of its own.
    """

    name: str
    text: str
    files: Mapping[str, bytes] = field(default_factory=dict)
    called: bool = False


def text(name: str, value: str) -> str:
    """Return a binding of a text."""
    return f"(name = {json.dumps(name)}, text = {json.dumps(value)})"


def as_json(name: str, value: object) -> str:
    """Return a binding of a value."""
    return f"(name = {json.dumps(name)}, json = {json.dumps(json.dumps(value))})"


def service(name: str, target: str, props: Mapping[str, str] | None = None) -> str:
    """Return a binding of another service."""
    given = f", props = (json = {json.dumps(json.dumps(props))})" if props else ""
    return f'(name = "{name}", service = (name = "{target}"{given}))'


def objects(name: str, class_name: str) -> str:
    """Return a binding of Durable Objects of the same Worker."""
    return f'(name = "{name}", durableObjectNamespace = "{class_name}")'


def kv(name: str, target: str = "kv") -> str:
    """Return a binding of a KV namespace of `kv_store`."""
    props = json.dumps(json.dumps({"namespace": KV_NAMESPACE}))
    return f'(name = "{name}", kvNamespace = (name = "{target}", props = (json = {props})))'


def d1(name: str, target: str = "d1") -> str:
    """Return a binding of a D1 database of `d1_store`, or of a meter in front of it."""
    inner = service("fetcher", target, {"database": DATABASE})
    return f'(name = "{name}", wrapped = (moduleName = "cloudflare-internal:d1-api", innerBindings = [{inner}]))'


def worker(
    name: str,
    modules: Mapping[str, bytes],
    *,
    shared: Mapping[str, bytes] | None = None,
    bindings: Sequence[str] = (),
    date: str = JAVASCRIPT_DATE,
    flags: Sequence[str] = (),
    stored: Sequence[str] = (),
    called: bool = True,
) -> Service:
    """Return a Worker. modules: by name, the entry first. shared: modules of several Workers, which are stored once.

    stored: its classes of Durable Objects, which are on the disk `disk`.
    """
    own = {f"{name}/{module}": content for module, content in modules.items()}
    listed = [_module(f"{name}/{module}", module) for module in modules]
    listed += [_module(path, path) for path in shared or {}]
    parts = [
        f"modules = [{', '.join(listed)}]",
        f'compatibilityDate = "{date}"',
        f"compatibilityFlags = {json.dumps(list(flags))}",
        f"bindings = [{', '.join(bindings)}]",
    ]
    if stored:
        classes = [f'(className = "{one}", uniqueKey = "{name}-{one}", enableSql = true)' for one in stored]
        parts += [f"durableObjectNamespaces = [{', '.join(classes)}]", 'durableObjectStorage = (localDisk = "disk")']
    return Service(name, f"worker = ({', '.join(parts)})", {**own, **(shared or {})}, called)


def javascript(name: str, script: Path, *, bindings: Sequence[str] = (), called: bool = True) -> Service:
    """Return a Worker of one script."""
    return worker(name, {script.name: script.read_bytes()}, bindings=bindings, called=called)


def kv_store(*, cached: bool) -> Service:
    """Return workerd's own KV. cached: with its read cache, as a hot key is in a location of Cloudflare's."""
    bindings = [objects("SHARD", "KVNamespace"), service("BLOBS", "disk")]
    return _bundled(
        "kv", "KVNamespace", [*bindings, *([as_json("CLUSTERED", value=True)] if cached else [])], script="kv"
    )


def d1_store(name: str = "d1") -> Service:
    """Return workerd's own D1."""
    return _bundled(name, "D1Database", [objects("DATABASE", "D1Database")], script="d1")


def _bundled(name: str, class_name: str, bindings: Sequence[str], *, script: str) -> Service:
    parts = [
        f'modules = [(name = "{script}.js", bundled = "/workerd/{script}.js")]',
        f'compatibilityDate = "{JAVASCRIPT_DATE}"',
        f'durableObjectNamespaces = [(className = "{class_name}", uniqueKey = "{name}", enableSql = true)]',
        'durableObjectStorage = (localDisk = "disk")',
        f"bindings = [{', '.join(bindings)}]",
    ]
    return Service(name, f"worker = ({', '.join(parts)})")


def _module(path: str, name: str) -> str:
    return f"(name = {json.dumps(name)}, {module_kind(path)} = embed {json.dumps(path)})"
