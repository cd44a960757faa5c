"""The whole Worker on the host's stand-ins, with both tenants in it: what the attacker attacks."""

from __future__ import annotations

import base64
import json
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from random import Random
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from retain.gateway.provisioning import credential_entry, new_api_key, tool_entry
from retain.host.crypto import HostCrypto
from retain.models.requests import model_requests_allowed
from tests.admin.access_team import AUDIENCE, ISSUER, NOW_S
from tests.attack.evidence import Evidence, Rows, rows_of
from tests.attack.known import Known
from tests.attack.tenants import ATTACKER, OWNER, TOOL, VICTIM, Furnished
from tests.e2e.puppet import obey
from tests.gateway.setting import config
from tests.shell.guarded_routes import ACCOUNT
from tests.shell.platform import js
from tests.shell.platform.ffi import options_of
from tests.shell.platform.http import Headers, Response
from tests.shell.platform.streams import ReadableStream
from tests.shell.worker import KEY, Answer, Worker, serving
from tests.support.model_server import chat_reply_to_wire

MAX_STEPS = 20_000_000
"""Most instructions of SQLite that one attempt may cost: about a third of a second."""
_STEP = 10_000


class Target:
    """The deployment under attack.

    canary: what every word of the victim begins with. leaks: where it was seen outside of an answer. applications: headers
    with keys of the attacker's, and with a token of its user. inside: with a token of the victim's, for a user of it of whom
    it has nothing.
    """

    def __init__(self, worker: Worker, rng: Random) -> None:
        self.worker = worker
        self.rng = rng
        self.canary = f"q{rng.getrandbits(48):012x}"
        self.attacked = False
        self.leaks: list[str] = []
        self.steps = 0
        self.mine = Known(rng)
        self.theirs = Known(rng)
        self.keys: dict[str, str] = {}
        self.applications: list[Mapping[str, str]] = []
        self.inside: Mapping[str, str] = {}
        self._owner = self.token(OWNER)
        self._words = 0
        self._queries = 0

    async def request(
        self,
        method: str,
        path: str,
        content: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        """Send a request: of the owner of all tenants, unless headers are given."""
        return await self.worker.request(method, path, content, headers=headers or self._owner, body=body)

    def token(self, email: str) -> dict[str, str]:
        """Return the header of a request of this person that Access let through."""
        claims = {"aud": [AUDIENCE], "iss": ISSUER, "email": email, "sub": email, "type": "app"}
        payload = json.dumps({**claims, "iat": NOW_S - 10, "exp": NOW_S + 3600}).encode()
        signed = jwt.api_jws.encode(payload, _access_key(), algorithm="RS256", headers={"kid": "current"})
        return {"cf-access-jwt-assertion": signed}

    async def prepare(self) -> Evidence:
        """Furnish the victim, take the evidence, and furnish the attacker after it."""
        for tenant, known, word in ((VICTIM, self.theirs, self._canary), (ATTACKER, self.mine, self._word)):
            await self._provision(tenant, word())
            furnished = Furnished(self, tenant, word)
            await furnished.furnish()
            await self.worker.settled()
            await self.worker.ring()
            await self.worker.settled()
            await furnished.look_around()
            for path, answer in furnished.answers:
                known.learn(path, answer.body)
            if tenant == VICTIM:
                runner = await self._application(tenant, "runs")
                self.inside = await self._user(tenant, "nobody", runner)
                known.hide(self.rng)
                evidence = Evidence.taken(self.rows(), VICTIM)
        self.theirs.lines = [re.sub(f"{self.canary}x[0-9]+", "plain", line) for line in self.theirs.lines]
        admin = await self._application(ATTACKER, "admin")
        scoped = await self._application(ATTACKER, "runs", "memory:read", "memory:write")
        ann = await self._user(ATTACKER, "ann", admin)
        self.applications = [*[admin] * 7, scoped, scoped, ann]  # most of what the others ask is refused at once
        self.attacked = True
        return evidence

    def rows(self) -> Rows:
        """Return every row of every store."""
        worker = self.worker
        found: dict[str, Counter[tuple[object, ...]]] = {}
        for name, store in (
            ("d1", worker.db.store),
            ("kv", worker.kv.store),
            ("r2", worker.cold.store),
            ("vectors", worker.vectors.store),
        ):
            found |= rows_of(name, store._connection)
        for name, storage in worker.agents.storages.items():
            found |= rows_of(f"do:{name}", storage.connection)
        found["objects/names"] = Counter((name,) for name in worker.agents.storages)
        return found

    def calls(self) -> int:
        """Return how many calls of bindings there were since the last time."""
        worker = self.worker
        others = (worker.kv, worker.cold, worker.vectors, worker.agents, worker.ai)
        count = self._queries + sum(len(binding.calls) for binding in others)
        self._queries = 0
        for binding in (worker.db, *others):
            binding.calls.clear()
        worker.agents.requests.clear()
        worker.vectors.asked.clear()
        return count

    def count_work(self) -> None:
        """Count what the database is asked, and its instructions. A batch is one call, as the platform counts."""
        database = self.worker.db
        for name in ("all", "batch"):
            vars(database)[name] = self._counted(getattr(database, name))
        database.store._connection.set_progress_handler(self._step, _STEP)

    def _counted(self, method: Callable[[Any], Awaitable[Any]]) -> Callable[[Any], Awaitable[Any]]:
        async def counted(given: Any) -> Any:
            self._queries += 1
            return await method(given)

        return counted

    def answer(self, model: str, inputs: Mapping[str, Any]) -> object:
        """Answer as a model that does what the last message says, and see what it was shown."""
        self._see("a prompt", json.dumps(inputs))
        messages = inputs["messages"]
        last = max(place for place, message in enumerate(messages) if message["role"] == "user")
        results = [message["content"] for message in messages[last:] if message["role"] == "tool"]
        text = messages[last]["content"]
        try:
            reply = obey(json.loads(text), results)
        except (ValueError, LookupError, TypeError):
            reply = obey({"calls": [], "say": "-"}, results)
        return chat_reply_to_wire(reply, model)

    async def fetch(self, url: str, options: object) -> Response:
        """Answer as the tools' upstream, which repeats what it was sent."""
        if url == f"{ISSUER}/cdn-cgi/access/certs":
            return Response(ReadableStream(_piece(_certificates())), 200, Headers())
        given = options_of(options)
        sent = json.dumps({"headers": options_of(given["headers"]), "body": given.get("body"), "url": url})
        self._see("a call of an upstream", sent)
        return Response(ReadableStream(_piece(sent)), 200, Headers([("content-type", "application/json")]))

    def _see(self, where: str, text: str) -> None:
        if self.attacked and self.canary in text.lower():
            self.leaks.append(where)

    def _canary(self) -> str:
        self._words += 1
        return f"{self.canary}x{self._words}"

    def _word(self) -> str:
        self._words += 1
        return f"plain{self._words}"

    def _step(self) -> int:
        self.steps += _STEP
        return 0

    async def _application(self, tenant: str, *scopes: str) -> Mapping[str, str]:
        """Return the header of an application with a new key, which it has used."""
        made = await self.request("POST", f"/admin/tenants/{tenant}/keys", {"name": "app", "scopes": scopes})
        assert made.status == 201, made.body
        if tenant == ATTACKER:
            self.mine.hidden |= {made.content["key_id"]}  # who revokes its own key can try nothing more
        headers = {"authorization": f"Bearer {made.content['key']}"}
        await self.request("GET", f"/v1/agents/{tenant}", headers=headers)
        await self.worker.settled()
        return headers

    async def _user(self, tenant: str, user: str, application: Mapping[str, str]) -> Mapping[str, str]:
        """Return the header of a user of the application."""
        made = await self.request(
            "POST", f"/v1/tenants/{tenant}/tokens", {"user": user, "minutes": 60}, headers=application
        )
        assert made.status == 201, made.body
        return {"authorization": f"Bearer {made.content['token']}"}

    async def _provision(self, tenant: str, secret: str) -> None:
        key = new_api_key(tenant, [TOOL], now_ms=self.worker.clock())
        parameters = {"type": "object", "properties": {"order_id": {"type": "string"}}}
        tool = tool_entry(tenant, TOOL, config(parameters=parameters))
        credential = await credential_entry(HostCrypto(), base64.b64decode(KEY), tenant, TOOL, secret)
        for entry in (key.entry, tool, credential):
            await entry.write(self.worker.kv.store)
        self.keys[tenant] = key.api_key


@cache
def _access_key() -> rsa.RSAPrivateKey:
    """Return the key with which the team signs, one per process: to make one takes longer than a hundred attempts."""
    return rsa.generate_private_key(65537, 2048)


def _certificates() -> str:
    public = jwt.algorithms.RSAAlgorithm.to_jwk(_access_key().public_key(), as_dict=True)
    return json.dumps({"keys": [{**public, "kid": "current"}]})


async def _piece(text: str) -> AsyncIterator[bytes]:
    yield text.encode()


@asynccontextmanager
async def target(rng: Random) -> AsyncIterator[Target]:
    """Serve a deployment to attack. Its log is silent."""
    settings = {
        "CHAT_PROVIDER": "workers-ai",
        "CHAT_MODEL": "@cf/chat",
        "ALLOW_MODEL_REQUESTS": "true",
        "RETAIN_ENVIRONMENT": "production",
        "ACCESS_TEAM_DOMAIN": ISSUER.removeprefix("https://"),
        "ACCESS_AUDIENCE": AUDIENCE,
        "OWNERS": f"email:{OWNER}",
        "AGENT_MEMORY_ACCOUNT": ACCOUNT,
        "APPLICATION_KEYS": "true",
    }
    with _silent(), model_requests_allowed(), pytest.MonkeyPatch.context() as patch:
        async with serving(**settings) as worker:
            attacked = Target(worker, rng)
            patch.setattr(worker.ai, "_answer", attacked.answer)
            patch.setattr(js, "fetch", attacked.fetch)
            attacked.count_work()
            yield attacked


@contextmanager
def _silent() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
