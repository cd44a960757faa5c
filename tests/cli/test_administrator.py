"""What commands of an administrator print when something else answers, or the service token cannot be sent."""

from __future__ import annotations

import httpx
import pytest

from retain.cli.administrator import open_client
from retain.cli.command import main

URL = "http://retain.example"
COMMANDS = [
    ["history", "verify", "--tenant", "acme"],
    ["history", "dump", "--tenant", "acme"],
    ["roles", "list", "--tenant", "acme"],
    ["shards", "list"],
    ["shards", "show", "acme"],
    ["namespaces", "status"],
]


def _answering(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    answered = httpx.MockTransport(lambda _: httpx.Response(200, text=text))
    monkeypatch.setattr(httpx.Client, "_init_transport", lambda *_, **__: answered)


@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_another_service_that_answers_json_is_reported_on_a_line(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _answering(monkeypatch, '{"ok": true}')
    assert main([*arguments, "--url", URL]) == 1
    assert capsys.readouterr().err.startswith("what answered is not this version of Retain: its answer has no '")
    _answering(monkeypatch, "[1]")
    assert main([*arguments, "--url", URL]) == 1
    assert capsys.readouterr().err == "what answered is not Retain: it sent no object in JSON (server_failed)\n"


@pytest.mark.parametrize("name", ["CF_ACCESS_CLIENT_ID", "CF_ACCESS_CLIENT_SECRET"])
@pytest.mark.parametrize("value", ["swordfish-é", "swordfish\n", "swordfish 2"])
def test_a_service_token_that_no_header_can_carry_is_refused_without_its_text(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    assert main(["roles", "list", "--url", URL, "--tenant", "acme"]) == 1
    assert main(["runs", "list", "--url", URL, "--tenant", "acme"]) == 2
    assert capsys.readouterr().err == f"{name} has characters that no service token has (usage)\n" * 2


@pytest.mark.parametrize("proxy", ["socks5://127.0.0.1:9", "gopher://127.0.0.1:9"])
def test_a_proxy_that_cannot_be_used_is_reported_on_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], proxy: str
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    assert main(["roles", "list", "--url", URL, "--tenant", "acme"]) == 1
    assert main(["runs", "list", "--url", URL, "--tenant", "acme"]) == 2
    reported = capsys.readouterr().err.splitlines()
    assert len(reported) == 2
    assert all(line.startswith("the proxy that the environment names cannot be used: ") for line in reported)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]"])
def test_a_server_of_this_machine_is_reached_without_the_proxy(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for url, proxied in ((f"http://{host}:8787", False), (URL, True)):
        with open_client(url) as client:
            assert (client._transport_for_url(client.base_url) is not client._transport) == proxied
