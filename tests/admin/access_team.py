"""A Cloudflare Access team on the loopback interface, with real keys and real HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

from retain.admin.access import AccessSettings
from retain.host.fetch import HostFetch
from retain.ports import MAX_RESPONSE_BYTES, HttpResponse, Until

ISSUER = "https://acme.cloudflareaccess.com"
AUDIENCE = "32eafc7626e974616deaf0dc3ce63d7bcbed58a2731e84d06bc3cdf1b53c4228"
SETTINGS = AccessSettings("acme.cloudflareaccess.com", AUDIENCE)
NOW_S = 1_700_000_000
Sign = Callable[..., str]
"""Makes a token: claims to change (None removes one), the key that signs, and header fields."""


class Team:
    """The team's domain: a local server for its certificates. It counts requests and can be made to fail."""

    def __init__(self) -> None:
        self.keys: dict[str, rsa.RSAPrivateKey] = {}
        self.answer: tuple[int, bytes] | None = None
        self.requests = 0
        team = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                team.requests += 1
                status, body = team.answer or (200, team.certificates())
                found = self.path == "/cdn-cgi/access/certs"
                self.send_response(status if found else 404)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def certificates(self) -> bytes:
        entries = [
            {**jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, "use": "sig"}
            for kid, key in self.keys.items()
        ]
        return json.dumps({"keys": entries, "public_cert": {}, "public_certs": []}).encode()


class TeamFetch:
    """HostFetch, with the team's domain resolved to the local server. Any other address is an error."""

    def __init__(self, team: Team) -> None:
        self.client = HostFetch()
        self._team = team

    async def __call__(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        body: str | bytes | None,
        timeout_ms: int,
        limit_bytes: int = MAX_RESPONSE_BYTES,
        until: Until | None = None,
    ) -> HttpResponse:
        assert url.startswith(ISSUER + "/"), url
        local = self._team.origin + url.removeprefix(ISSUER)
        return await self.client(method, local, headers=headers, body=body, timeout_ms=timeout_ms)
