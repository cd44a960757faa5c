"""The upstream of a tool that is not idempotent, and the receiver of webhooks: it counts what it was asked and sent, outside
the deployment that is killed."""

from __future__ import annotations

import json
import threading
from collections import Counter, defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from retain.gateway.provisioning import KvEntry, tool_entry

TOOL = "ship_order"
HOOKS = "/hooks/"


class Shipping:
    """Ships each order that it is asked to ship, as often as it is asked. shipped: how often, by order.

    heard: the events and ids of the messages that it received, by tenant.
    """

    def __init__(self) -> None:
        self.shipped: Counter[str] = Counter()
        self.heard: dict[str, set[tuple[str, str]]] = defaultdict(set)
        shipping = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                content = json.loads(self.rfile.read(int(self.headers["content-length"])))
                if self.path.startswith(HOOKS):
                    shipping.heard[self.path.removeprefix(HOOKS)].add((content["type"], self.headers["webhook-id"]))
                    self._answer({})
                    return
                order = content["order_id"]
                shipping.shipped[order] += 1
                self._answer({"shipped": order})

            def _answer(self, content: dict[str, str]) -> None:
                answer = json.dumps(content).encode()
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def hook(self, tenant: str) -> str:
        """Return where messages of a tenant are received."""
        return f"http://127.0.0.1:{self._server.server_port}{HOOKS}{tenant}"

    def tool(self, tenant: str, *, idempotent: bool = False) -> KvEntry:
        """Return what KV must hold for a tenant's agents to ship orders. idempotent: what the tool claims."""
        host = f"127.0.0.1:{self._server.server_port}"
        config = {
            "version": 1,
            "description": "Ship an order.",
            "url": f"http://{host}/orders",
            "method": "POST",
            "host": host,
            "auth": {"kind": "none"},
            "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}},
            "idempotent": idempotent,
            "timeout_ms": 5000,
        }
        return tool_entry(tenant, TOOL, config, allow_loopback=True)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
