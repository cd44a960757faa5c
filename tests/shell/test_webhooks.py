"""Webhooks through the whole Worker: created over HTTP, sent by the instance, listed, replayed, and erased with the run."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from retain.webhooks.endpoints import EVENTS, MAX_WEBHOOKS
from retain.webhooks.signing import signed_headers
from tests.shell.worker import Worker

WEBHOOKS = "/v1/tenants/acme/webhooks"
RUN = "Contact contact:7 responded positively."


class Shop:
    """An application's server. messages: headers and body of each. status: of its answers."""

    def __init__(self) -> None:
        self.messages: list[tuple[dict[str, str], str]] = []
        self.status = 204
        shop = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"])).decode()
                shop.messages.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(shop.status)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hooks?shop=1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def shop() -> Iterator[Shop]:
    served = Shop()
    yield served
    served.close()


@pytest.fixture
async def acme(worker: Worker) -> Worker:
    await worker.tenant("acme")
    return worker


async def created(worker: Worker, shop: Shop, **more: object) -> dict[str, Any]:
    answer = await worker.request("POST", WEBHOOKS, {"url": shop.url, **more})
    assert answer.status == 201, answer.body
    return dict(answer.content)


async def listed(worker: Worker, webhook_id: str, query: str = "") -> list[dict[str, Any]]:
    answer = await worker.request("GET", f"{WEBHOOKS}/{webhook_id}/deliveries{query}")
    assert answer.status == 200, answer.body
    return list(answer.content["deliveries"])


async def test_a_webhook_hears_of_a_run_with_a_valid_signature_and_its_secret_is_shown_once(
    acme: Worker, shop: Shop
) -> None:
    made = await created(acme, shop)
    secret = made.pop("secret")
    assert made == {**made, "url": shop.url, "events": list(EVENTS), "created_by": "developer"}
    known = await acme.request("GET", WEBHOOKS)
    assert known.content == {"webhooks": [made], "cursor": None}
    [row] = await acme.rows("SELECT * FROM webhooks")
    assert secret not in json.dumps(dict(row))
    run = await acme.run("acme", "sdr", RUN)
    [(headers, body)] = shop.messages
    signed = signed_headers([secret], f"msg_{run['run_id']}", int(headers["webhook-timestamp"]) * 1000, body)
    assert signed.items() <= headers.items()
    assert json.loads(body)["data"]["output"] == run["output"]
    [delivery] = await listed(acme, made["webhook_id"])
    assert (delivery["message_id"], delivery["status"], delivery["response_status"]) == (
        f"msg_{run['run_id']}",
        "delivered",
        204,
    )


async def test_what_was_not_received_is_listed_and_replayed(acme: Worker, shop: Shop) -> None:
    shop.status = 500
    webhook_id = (await created(acme, shop, events=["run.completed"]))["webhook_id"]
    await acme.run("acme", "sdr", RUN)
    [waiting] = await listed(acme, webhook_id, "?status=pending")
    assert (waiting["attempts"], waiting["response_status"], waiting["due_at_ms"] > waiting["last_at_ms"]) == (
        1,
        500,
        True,
    )
    shop.status = 200
    path = f"{WEBHOOKS}/{webhook_id}/deliveries/{waiting['message_id']}/replay"
    answer = await acme.request("POST", path)
    assert (answer.status, answer.content["message_id"]) == (202, waiting["message_id"])
    await acme.settled()
    assert [one["attempts"] for one in await listed(acme, webhook_id, "?status=delivered")] == [2]
    assert await listed(acme, webhook_id, "?status=failed") == []
    other = path.replace(waiting["message_id"], "msg_01HZZZZZZZZZZZZZZZZZZZZZZZ")
    assert (await acme.request("POST", other)).content["code"] == "no_such_delivery"


async def test_the_alarm_sends_again(acme: Worker, shop: Shop) -> None:
    shop.status = 500
    webhook_id = (await created(acme, shop))["webhook_id"]
    await acme.run("acme", "sdr", RUN)
    shop.status = 200
    acme.restart()
    acme.clock.advance(5_000)
    await acme.ring()
    await acme.settled()
    assert [one["status"] for one in await listed(acme, webhook_id)] == ["delivered"]


@pytest.mark.parametrize(
    ("asked", "after_ms", "signing"),
    [
        (None, 0, ["new", "old"]),
        (None, 3_599_000, ["new", "old"]),
        (None, 3_600_000, ["new"]),
        ({"grace_minutes": 0}, 0, ["new"]),
        ({"grace_minutes": 10_080}, 604_799_000, ["new", "old"]),
    ],
)
async def test_another_secret_signs_the_next_message_and_for_a_while_the_old_one_as_well(
    acme: Worker, shop: Shop, asked: dict[str, int] | None, after_ms: int, signing: list[str]
) -> None:
    first = await created(acme, shop)
    assert first["previous_until_ms"] is None
    rotated = await acme.request("POST", f"{WEBHOOKS}/{first['webhook_id']}/rotate", asked)
    grace_ms = 60_000 * (60 if asked is None else asked["grace_minutes"])
    until_ms = acme.clock() + grace_ms if grace_ms else None
    expected = {**first, "secret": rotated.content["secret"], "previous_until_ms": until_ms}
    assert (rotated.status, rotated.content) == (200, expected)
    secrets = {"old": first["secret"], "new": rotated.content["secret"]}
    assert len(set(secrets.values())) == 2
    acme.clock.advance(after_ms)
    run = await acme.run("acme", "sdr", RUN)
    [(headers, body)] = shop.messages
    at_ms = int(headers["webhook-timestamp"]) * 1000
    signed = signed_headers([secrets[one] for one in signing], f"msg_{run['run_id']}", at_ms, body)
    assert headers["webhook-signature"] == signed["webhook-signature"]


async def test_a_rotation_is_in_the_history_and_needs_a_bounded_time(acme: Worker, shop: Shop) -> None:
    path = f"{WEBHOOKS}/{(await created(acme, shop))['webhook_id']}/rotate"
    for wrong in (-1, 10_081, "60"):
        assert (await acme.request("POST", path, {"grace_minutes": wrong})).content["code"] == "invalid_body"
    await acme.request("POST", path)
    kinds = await acme.rows(
        "SELECT kind FROM mutation_log WHERE tenant_id = 'acme' AND kind GLOB 'webhook_*' ORDER BY number"
    )
    assert [row["kind"] for row in kinds] == ["webhook_created", "webhook_rotated"]


async def test_secrets_are_sealed_again_with_a_new_key_and_stay_the_same(acme: Worker, shop: Shop) -> None:
    first, other = await created(acme, shop), await created(acme, shop)
    rotated = (await acme.request("POST", f"{WEBHOOKS}/{first['webhook_id']}/rotate")).content
    old, new = acme.env.CREDENTIALS_KEY, base64.b64encode(bytes(32)).decode()
    acme.env.CREDENTIALS_KEY, acme.env.PREVIOUS_CREDENTIALS_KEY = new, old
    acme.restart()
    for expected in (2, 0):
        answer = await acme.request("POST", f"{WEBHOOKS}/reseal")
        assert (answer.status, answer.content) == (200, {"resealed": expected, "unreadable": 0})
    acme.env.PREVIOUS_CREDENTIALS_KEY = ""
    acme.restart()
    run = await acme.run("acme", "sdr", RUN)
    got, wanted = set(), set()
    for headers, body in shop.messages:
        at_ms = int(headers["webhook-timestamp"]) * 1000
        got.add(headers["webhook-signature"])
        for secrets in ([rotated["secret"], first["secret"]], [other["secret"]]):
            wanted.add(signed_headers(secrets, f"msg_{run['run_id']}", at_ms, body)["webhook-signature"])
    assert got == wanted
    kinds = await acme.rows("SELECT kind FROM mutation_log WHERE tenant_id = 'acme' AND kind = 'webhook_rotated'")
    assert len(kinds) == 1


async def test_a_secret_that_no_key_opens_keeps_no_other_from_being_sealed_again(acme: Worker, shop: Shop) -> None:
    lost, _ = await created(acme, shop), await created(acme, shop)
    foreign = """UPDATE webhooks SET secret = replace(secret, '"kid": "', '"kid": "x') WHERE webhook_id = ?"""
    await acme.rows(foreign, lost["webhook_id"])
    old = acme.env.CREDENTIALS_KEY
    acme.env.CREDENTIALS_KEY, acme.env.PREVIOUS_CREDENTIALS_KEY = base64.b64encode(bytes(32)).decode(), old
    acme.restart()
    answer = await acme.request("POST", f"{WEBHOOKS}/reseal")
    assert answer.content == {"resealed": 1, "unreadable": 1}


async def test_deliveries_come_in_pages(acme: Worker, shop: Shop) -> None:
    webhook_id = (await created(acme, shop))["webhook_id"]
    runs = [(await acme.run("acme", "sdr", RUN, instance_id=f"desk-{number}"))["run_id"] for number in range(3)]
    path, seen, cursor = f"{WEBHOOKS}/{webhook_id}/deliveries?limit=2", [], ""
    for _ in range(2):
        page = (await acme.request("GET", path + cursor)).content
        seen += [one["run_id"] for one in page["deliveries"]]
        cursor = f"&cursor={page['cursor']}"
    assert (seen, page["cursor"]) == (sorted(runs, reverse=True), None)


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://shop.example/hooks", "invalid_webhook_url"),
        ("https://shop.example/{order}", "invalid_webhook_url"),
        ("https://shop.example/hooks#top", "invalid_webhook_url"),
        ("https://shop.example/" + "x" * 20_000, "invalid_webhook_url"),
        ("http://shop.example/hooks", "forbidden_upstream"),
        ("https://10.0.0.7/hooks", "forbidden_upstream"),
        ("https://0x7f000001/hooks", "forbidden_upstream"),
        ("https://metadata.internal/hooks", "forbidden_upstream"),
        ("https://user@shop.example/hooks", "forbidden_upstream"),
        ("https://shop.example:25/hooks", "forbidden_upstream"),
    ],
)
async def test_an_address_where_nothing_may_be_sent_is_refused(acme: Worker, url: str, code: str) -> None:
    answer = await acme.request("POST", WEBHOOKS, {"url": url})
    assert (answer.status, answer.content["code"]) == (400, code)
    assert await acme.rows("SELECT * FROM webhooks") == []


async def test_a_tenant_has_a_bounded_number_of_webhooks(acme: Worker, shop: Shop) -> None:
    made = [await created(acme, shop) for _ in range(MAX_WEBHOOKS)]
    full = await acme.request("POST", WEBHOOKS, {"url": shop.url})
    assert (full.status, full.content["code"]) == (507, "too_many_webhooks")
    first = (await acme.request("GET", f"{WEBHOOKS}?limit=6")).content
    second = (await acme.request("GET", f"{WEBHOOKS}?limit=6&cursor={first['cursor']}")).content
    listed_ids = [one["webhook_id"] for page in (first, second) for one in page["webhooks"]]
    assert (listed_ids, second["cursor"]) == (sorted(one["webhook_id"] for one in made), None)
    gone = f"{WEBHOOKS}/{made[0]['webhook_id']}"
    assert (await acme.request("DELETE", gone)).status == 204
    assert (await acme.request("DELETE", gone)).content["code"] == "no_such_webhook"
    assert (await acme.request("GET", f"{gone}/deliveries")).content["code"] == "no_such_webhook"
    await created(acme, shop)


async def test_the_deliveries_of_a_run_are_erased_with_it(acme: Worker, shop: Shop) -> None:
    await created(acme, shop)
    await acme.run("acme", "sdr", RUN, user={"id": "ann"})
    await acme.run("acme", "sdr", RUN, user={"id": "bob"}, instance_id="bobs")
    answer = await acme.request("DELETE", "/admin/tenants/acme/users/ann")
    assert (answer.status, answer.content["receipt"]["completed_at_ms"] is None) == (200, False), answer.body
    assert [row["instance_id"] for row in await acme.rows("SELECT instance_id FROM webhook_deliveries")] == ["bobs"]
