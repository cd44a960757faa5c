"""Attempts: one request each, made from the routes' own tables, so that a new route is attacked as soon as it is there."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import TypeAdapter

from retain.admin.mcp import _TOOLS as MEMORY_TOOLS
from retain.routing.application_paths import applications_path
from retain.routing.route import Route
from tests.attack.known import ULID, Known
from tests.attack.tenants import ATTACKER, MEMBERS, TOOL, VICTIM
from tests.attack.values import Values
from tests.shell.guarded_routes import ACCOUNT
from tools.http_docs import ANSWERED

ROUTES: tuple[Route[Any], ...] = tuple(route for resource in ANSWERED for route in resource.routes)
GATEWAY = tuple(route for route in ROUTES if route.guard == "API key")
"""The routes of the tool proxy."""
_SECRET = ("cf-access-jwt-assertion", "authorization")
_PROFILES = "/client/v4/accounts/{account}/agent-memory/namespaces/{tenant}/profiles"
_ENVELOPE = b"io.modelcontextprotocol/protocolVersion"
_HEXADECIMAL = re.compile(r"[0-9a-f]{32}")
_PARAMETER = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Attempt:
    """One request. route: as it is in the table, with its method."""

    route: str
    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def __str__(self) -> str:
        sent = "" if self.body is None else f" {self.body[:600]!r}"
        headers = {name: value for name, value in self.headers.items() if name not in _SECRET}
        return f"{self.method} {self.path} {headers or ''}{sent}"


class Attacker:
    """Draws attempts. api_key, token: the attacker's own, for the gateway and for what is behind Access.

    applications: headers with the attacker's keys as an application and with a token of its user, each instead of `token`.
    """

    def __init__(
        self,
        rng: Random,
        mine: Known,
        theirs: Known,
        *,
        api_key: str,
        token: Mapping[str, str],
        applications: Sequence[Mapping[str, str]] = (),
    ) -> None:
        self._rng = rng
        self._values = Values(rng, mine, theirs)
        self._mine = mine
        self._theirs = theirs
        self._api_key = api_key
        self._token = token
        self._applications = applications
        self._bodies: Mapping[str, Callable[[], bytes]] = {
            "POST /mcp": self._gateway_message,
            "POST /admin/tenants/{tenant}/mcp": self._memory_message,
            "POST /admin/tenants/{tenant}/import": self._lines,
            f"POST {_PROFILES}/{{profile}}/ingest": self._conversation,
            "POST /v1/agents/{tenant}/mcp": self._agents_message,
            "POST /v1/agents/{tenant}/attachments": self._file,
            "POST /v1/chat/completions": self._chat,
            "POST /v1/agents/{tenant}/{agent_type}/ag-ui": self._ag_ui,
            "PUT /admin/tenants/{tenant}/agents/{agent_type}": self._definition,
            "POST /admin/tenants/{tenant}/agents/{agent_type}/check": self._definition,
            "POST /api/v1/tools/{tool_name}": lambda: _json({"order_id": self._values.known("id")}),
        }

    def attempt(self, among: Sequence[Route[Any]] = ROUTES) -> Attempt:
        """Return the next one. among: the routes of which it is one."""
        route = self._rng.choices(among, [_weight(route) for route in among])[0]
        self._values.listed = route.path.rpartition("/")[2]
        headers = {name: self._values.known("any") for name in route.headers if self._rng.random() < 0.15}
        if "openai-organization" in headers:
            headers["openai-organization"] = self._rng.choice((ATTACKER, VICTIM))
        if "if-match" in headers and self._rng.random() < 0.9:
            if route.name == "update_memory":
                headers["if-match"] = f'"{self._values.known("id")}"'
            else:
                headers["if-match"] = f'"{self._rng.randrange(5)}"'
        path = self._path(route) + self._query(route)
        if route.guard == "API key":
            headers["authorization"] = f"Bearer {self._key()}"
        elif self._applications and self._rng.random() < 0.25:
            headers |= self._as_application()
            if self._rng.random() < 0.7:
                path = applications_path(path)
        elif self._rng.random() < 0.995:
            headers |= self._token
        body = self._body(route)
        if body is not None and _ENVELOPE in body:
            headers |= _repeated(body)
        return Attempt(f"{route.method} {route.path}", route.method, path, headers, body)

    def _as_application(self) -> Mapping[str, str]:
        """Return the header of an application or of its user; sometimes with something changed."""
        chosen = self._rng.choice(self._applications)
        if self._rng.random() < 0.95:
            return chosen
        text = chosen["authorization"]
        changed = (text.replace(f"_{ATTACKER}_", f"_{VICTIM}_"), text[:-3], f"{text}.{VICTIM}", text.swapcase())
        return {"authorization": self._rng.choice(changed)}

    def _path(self, route: Route[Any]) -> str:
        names = {"model": "agent_type"}
        return _PARAMETER.sub(lambda found: self._segment(route, names.get(found[1], found[1])), route.path)

    def _segment(self, route: Route[Any], name: str) -> str:
        rng = self._rng
        if name == "tenant":
            drawn = rng.random()
            if route.name in ("delete_namespace", "delete_tenant"):  # who erases its own tenant can try nothing more
                return VICTIM if drawn < 0.5 else self._hostile_segment()
            if drawn < 0.84:
                return ATTACKER
            return VICTIM if drawn < 0.93 else self._hostile_segment()
        if rng.random() < 0.04:
            return self._hostile_segment()
        if name in ("agent_type", "service", "session", "instance_id", "user", "tool_name", "name"):
            return quote(self._values.known(name) if rng.random() < 0.9 else self._values.known("any"), safe="")
        if name == "kind":
            return quote(self._mine.one("kind") or "cart", safe="")
        if name == "id" and route.path.count("{") > 3:  # an item's
            return rng.choice(("one", "two", "big", "three"))
        if name == "subject":
            others = (MEMBERS[VICTIM], "ann@example.com")  # who takes its own role away can try nothing more
            return quote(f"email:{rng.choice(others)}", safe="")
        if name == "account":
            return ACCOUNT
        if name == "profile":
            return quote(rng.choice((self._values.known("user"), "house-orders", f"house-{VICTIM}")), safe="")
        if name == "memory_id":
            return quote(self._values.known("id"), safe="")
        if name == "message_id":
            return f"msg_{self._values.known('run_id')}"
        if name in ("error_id", "job_id"):
            return self._number_of(name, _HEXADECIMAL if name == "error_id" or "/ingest/" in route.path else ULID)
        if name == "against":
            return self._values.known("run_id")
        return quote(self._values.known(name), safe="")

    def _number_of(self, name: str, form: re.Pattern[str]) -> str:
        """Return a known id that has the form of these, if there is one. Ids of errors have that of ingest jobs."""
        drawn = [self._values.known("job_id" if name == "error_id" else name) for _ in range(8)]
        return next((one for one in drawn if form.fullmatch(one)), drawn[0])

    def _hostile_segment(self) -> str:
        text = self._values.hostile()
        way = self._rng.randrange(4)
        if way == 0:
            return quote(text, safe="")
        if way == 1:
            return quote(quote(text, safe=""), safe="")
        if way == 2:
            return "".join(f"%{byte:02x}" for byte in text.encode("utf-8", "surrogatepass")) or "%20"
        return quote(text, safe="%*:|$'") or "%20"

    def _query(self, route: Route[Any]) -> str:
        given: dict[str, object] = {}
        if route.query is not None:
            given = self._values.object(_schema(route.query.model), {}, most=0.3)
            _sensible(given, self._rng)
        if self._rng.random() < 0.02:
            given["tenant_id"] = VICTIM
        if given and self._rng.random() < 0.06:
            given[self._rng.choice(sorted(given))] = self._values.hostile()
        texts = {name: _text(value) for name, value in given.items() if value is not None}
        return f"?{urlencode(texts, errors='replace')}" if texts else ""

    def _body(self, route: Route[Any]) -> bytes | None:
        made = self._bodies.get(f"{route.method} {route.path}")
        if made is not None:
            return made()
        if route.body is None:
            return None
        if route.body.model is None:
            return self._values.hostile().encode("utf-8", "surrogatepass")
        content = self._values.object(_schema(route.body.model), {})
        _sensible(content, self._rng)
        if content and self._rng.random() < 0.05:
            content[self._rng.choice(sorted(content))] = self._values.hostile()
        if self._rng.random() < 0.03:
            content[self._rng.choice(("tenant_id", "tenant", "scope_id", "namespace"))] = VICTIM
        return _json(content)

    def _key(self) -> str:
        """Return the attacker's API key; sometimes with something changed."""
        if self._rng.random() < 0.9:
            return self._api_key
        prefix, _, rest = self._api_key.rpartition("_")
        changed = (f"{VICTIM}_{rest}", f"{self._api_key}:{VICTIM}", quote(VICTIM), f"{prefix}_{rest[::-1]}")
        return self._rng.choice(changed)

    def _memory_message(self) -> bytes:
        name, tool = self._rng.choice(sorted(MEMORY_TOOLS.items()))
        self._values.listed = "memories"
        arguments = self._values.object(_schema(tool.arguments), {})
        if isinstance(arguments.get("limit"), str):
            arguments["limit"] = 50
        if self._rng.random() < 0.04:
            arguments["tenant_id"] = VICTIM
        return self._message(name, arguments)

    def _gateway_message(self) -> bytes:
        name = self._rng.choice((TOOL, TOOL, TOOL, f"{VICTIM}:{TOOL}", self._values.hostile()))
        return self._message(name, {"order_id": self._values.known("id")})

    def _agents_message(self) -> bytes:
        """Return a call of an agent, or a message about a run as a task, of either tenant."""
        values, rng = self._values, self._rng
        agent_type, instance_id = values.known("agent_type"), values.known("instance_id")
        if rng.random() < 0.5:
            return self._message(agent_type, {"input": values.order(), "instance_id": instance_id})
        task_id = f"{agent_type}.{instance_id}.{values.known('run_id')}" if rng.random() < 0.9 else values.hostile()
        method = rng.choice(("tasks/get", "tasks/get", "tasks/update", "tasks/cancel"))
        capabilities: dict[str, object] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
        meta = {_ENVELOPE.decode(): "2026-07-28", "io.modelcontextprotocol/clientCapabilities": capabilities}
        params = {"taskId": task_id, "inputResponses": {"1.0": {"action": "accept"}}, "_meta": meta}
        return _json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})

    def _conversation(self) -> bytes:
        messages = [
            {"role": self._rng.choice(("user", "assistant")), "content": one["content"]}
            for one in self._values.messages()
        ]
        session = {"sessionId": self._values.known("any")} if self._rng.random() < 0.3 else {}
        return _json({"messages": messages, **session})

    def _definition(self) -> bytes:
        """Return the definition of an agent of the attacker's own."""
        content = self._values.definition()
        if self._rng.random() < 0.05:
            content[self._rng.choice(("tenant", "tenant_id", "model", "digest"))] = VICTIM
        return _json(content)

    def _file(self) -> bytes:
        """Return a file: one that is recognised without a type, as the victim may have it, or a hostile text."""
        rng = self._rng
        head = rng.choice((b"%PDF-1.4\n", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"\xff\xd8\xff", b""))
        return head + self._values.hostile().encode("utf-8", "surrogatepass") + b" " * 16

    def _talk(self) -> list[dict[str, object]]:
        talk: list[dict[str, object]] = [
            {"role": self._rng.choice(("user", "assistant")), "content": self._values.hostile()} for _ in range(2)
        ]
        content: object = self._values.known("any")
        if self._rng.random() < 0.15:
            named = {"type": "file", "file": {"file_id": self._values.known("attachment_id")}}
            content = [{"type": "text", "text": content}, named]
        return [*talk, {"role": "user", "content": content}]

    def _chat(self) -> bytes:
        rng = self._rng
        content: dict[str, object] = {"model": self._values.known("agent_type"), "messages": self._talk()}
        if rng.random() < 0.6:
            names = {"instance_id": self._values.known("instance_id"), "tenant": VICTIM, "note": self._values.hostile()}
            content["metadata"] = dict(rng.sample(sorted(names.items()), rng.randint(1, 3)))
        if rng.random() < 0.4:
            content["user"] = self._values.known("user")
        if rng.random() < 0.3:
            content["stream"] = True
        if rng.random() < 0.05:
            content[rng.choice(("n", "tools", "user", "model", "tenant"))] = self._values.hostile()
        return _json(content)

    def _ag_ui(self) -> bytes:
        rng = self._rng
        content: dict[str, object] = {"threadId": self._values.known("instance_id"), "runId": self._values.known("any")}
        content["messages"] = self._talk()
        if rng.random() < 0.3:
            user = {"user": {"id": self._values.known("user")}, "metadata": {"tenant": VICTIM}}
            content["forwardedProps"] = {"retain": user}
        if rng.random() < 0.2:
            question = f"{self._values.known('run_id')}:1.0"
            content["resume"] = [{"interruptId": question, "status": rng.choice(("cancelled", "resolved"))}]
        return _json(content)

    def _message(self, name: str, arguments: Mapping[str, object]) -> bytes:
        if self._rng.random() < 0.1:
            return _json({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
        params = {"name": name, "arguments": arguments}
        return _json({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})

    def _lines(self) -> bytes:
        """Return lines of an export, of either tenant, with ids and tenants of the other in them."""
        rng = self._rng
        source = self._mine.lines if rng.random() < 0.5 else self._theirs.lines
        lines = rng.sample(source, min(len(source), rng.randint(1, 4)))
        return "\n".join(self._changed(line) for line in lines).encode("utf-8", "surrogatepass")

    def _changed(self, line: str) -> str:
        rng = self._rng
        if rng.random() < 0.4:
            line = line.replace(self._mine.one("id") or "-", self._theirs.one("id") or "-")
        if rng.random() < 0.2:
            line = line.replace(f'"{ATTACKER}"', f'"{VICTIM}"')
        if rng.random() < 0.1:
            line = line.replace('"kind"', f'"tenant_id":"{VICTIM}","kind"', 1)
        if rng.random() < 0.1:
            line = re.sub(r'"content":"', f'"content":"{rng.randrange(99)} ', line, count=1)
        return line


@cache
def _weight(route: Route[Any]) -> int:
    """Return how often a route is attacked: more often if it takes conditions, of which there are more than of names."""
    models = (route.query and route.query.model, route.body and route.body.model)
    return 4 if any(model and "filter" in _schema(model).get("properties", {}) for model in models) else 1


@cache
def _schema(model: type) -> Mapping[str, Any]:
    return TypeAdapter(model).json_schema()


def _sensible(content: dict[str, object], rng: Random) -> None:
    """Leave out fields that exclude each other, most of the time."""
    if rng.random() < 0.03:
        return
    if content.get("stream"):
        content.pop("background", None)
    if "house" in content:
        for name in ("agent_type", "user_id") if rng.random() < 0.5 else ("house",):
            content.pop(name, None)
    if "valid_to_ms" in content and len(content) > 1:
        content.pop("valid_to_ms")
    if "match" in content:  # an erasure: of a subject or of a user, never of the attacker's own tenant
        content.pop("tenant", None)
        content.pop("confirm", None)
        content.pop("user" if "subject" in content else "subject", None)
    if {"since_ms", "until_ms"} <= content.keys():
        content.pop("since_ms")


def _repeated(body: bytes) -> dict[str, str]:
    """Return the headers that repeat what a message of MCP has in its body."""
    message = json.loads(body)
    named = message["params"]["taskId"].encode("utf-8", "surrogatepass")
    headers = {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
    return {**headers, "mcp-name": f"=?base64?{base64.b64encode(named).decode()}?="}


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _json(content: object) -> bytes:
    return json.dumps(content).encode("utf-8", "surrogatepass")
