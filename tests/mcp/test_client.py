"""The protocol's client against servers that are wrong or hostile, and what a definition may say of servers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from retain.agents.definitions import MAX_SERVED_NAME, AgentDefinition, McpServerConfig
from retain.agents.runs.tables import STEPS
from retain.agents.tools.built_in import CallContext
from retain.agents.tools.kept_lists import KeptLists
from retain.agents.tools.served import LISTED_MS, ServedTools, names_of
from retain.errors import NoSuchTool, RetainError, Unavailable, UpstreamFailed
from retain.host.object_sql import SqliteObjectSql
from retain.json_text import JsonObject
from retain.mcp.client import MAX_DESCRIPTION_CHARACTERS, MAX_PAGES, MAX_SCHEMA_BYTES, McpClient
from retain.ports import HttpResponse, Until
from retain.schema.object import migrate

OBJECT = {"type": "object"}
Answer = Callable[[str, JsonObject], Any]


class Server:
    """Answers each method as the test says: a result, or a whole response."""

    def __init__(self, **answers: Any) -> None:
        self.answers: dict[str, Any] = answers
        self.seen: list[tuple[str, Mapping[str, str], str | None]] = []
        self.messages: list[Any] = []
        self.until: Until | None = None

    async def __call__(
        self, message: JsonObject, headers: Mapping[str, str], key: str | None, until: Until | None
    ) -> HttpResponse:
        method = str(message["method"])
        self.seen.append((method, headers, key))
        self.messages.append(message)
        self.until = until
        if method == "initialize" and "initialize" not in self.answers:
            return answered(message, {"protocolVersion": "2025-11-25"}, **{"mcp-session-id": f"s{len(self.seen)}"})
        if "id" not in message:
            return HttpResponse(202, {}, b"")
        if method == "server/discover" and "discover" not in self.answers:
            return HttpResponse(400, {}, b"unsupported version")
        planned = self.answers[method.partition("/")[2] or method]
        given = planned(message) if callable(planned) else planned
        if isinstance(given, RetainError):
            raise given
        return given if isinstance(given, HttpResponse) else answered(message, given)

    def methods(self) -> list[str]:
        return [method for method, _, _ in self.seen]


def answered(message: JsonObject, result: object, **headers: str) -> HttpResponse:
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
    return HttpResponse(200, {"content-type": "application/json", **headers}, body)


def listed(**changes: Any) -> dict[str, Any]:
    return {"tools": [{"name": "search", "description": "Find.", "inputSchema": OBJECT, **changes}]}


def kept() -> KeptLists:
    local = SqliteObjectSql.open()
    migrate(local, STEPS)
    return KeptLists(local)


async def test_a_list_without_end_is_read_within_a_bound() -> None:
    pages = iter(range(1_000))
    server = Server(list=lambda message: {"tools": [], "nextCursor": f"page-{next(pages)}"})
    assert await McpClient(server).tools({"search"}) == []
    assert server.methods().count("tools/list") == MAX_PAGES


async def test_descriptions_are_cut_and_have_no_control_characters() -> None:
    server = Server(list=listed(description="a\x1b[31m\u202eb\n" + "c" * MAX_DESCRIPTION_CHARACTERS))
    [tool] = await McpClient(server).tools({"search"})
    assert tool.description.startswith("a[31mb\nc")
    assert len(tool.description) == MAX_DESCRIPTION_CHARACTERS - 2


async def test_a_schema_that_is_too_long_is_not_offered() -> None:
    rest = len(json.dumps({**OBJECT, "title": ""}))
    longest = {**OBJECT, "title": "x" * (MAX_SCHEMA_BYTES - rest)}
    assert await McpClient(Server(list=listed(inputSchema=longest))).tools({"search"})
    longer = {**OBJECT, "title": "x" * (MAX_SCHEMA_BYTES - rest + 1)}
    assert await McpClient(Server(list=listed(inputSchema=longer))).tools({"search"}) == []


@pytest.mark.parametrize("schema", [None, "text", {}, {"type": "array"}])
async def test_a_schema_that_is_not_an_object_s_is_not_offered(schema: object) -> None:
    assert await McpClient(Server(list=listed(inputSchema=schema))).tools({"search"}) == []


async def test_tools_that_were_not_asked_for_are_not_returned_and_each_name_counts_once() -> None:
    many = [
        {"name": f"t{number % 5_000}", "description": str(number), "inputSchema": OBJECT} for number in range(9_000)
    ]
    tools = await McpClient(Server(list={"tools": many})).tools({"t7", "recall_memory"})
    assert [(tool.name, tool.description) for tool in tools] == [("t7", "7")]


@pytest.mark.parametrize(
    "given",
    [
        {"tools": "none"},
        HttpResponse(200, {"content-type": "application/json"}, b"<html>"),
        HttpResponse(200, {"content-type": "application/json"}, b"[" * 5_000),
        HttpResponse(200, {"content-type": "application/json"}, b'{"jsonrpc":"2.0","id":99,"result":{"tools":[]}}'),
        HttpResponse(200, {"content-type": "text/event-stream"}, b"data: {}\n\n"),
        HttpResponse(200, {}, b"\xff"),
    ],
    ids=["not a list", "not JSON", "nested", "another request's", "no answer in the stream", "not text"],
)
async def test_an_answer_that_violates_the_protocol_is_an_error(given: object) -> None:
    with pytest.raises(UpstreamFailed) as raised:
        await McpClient(Server(list=given)).tools({"search"})
    assert raised.value.code == "upstream_failed"


async def test_the_text_of_an_embedded_resource_is_part_of_the_answer() -> None:
    readme, image = {"uri": "file:///a.md", "text": "# Hats"}, {"uri": "file:///a.png", "blob": "aGk="}
    content: list[dict[str, object]] = [
        {"type": "text", "text": "found:"},
        {"type": "resource", "resource": readme},
        {"type": "resource", "resource": image},
        {"type": "resource", "resource": "none"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png", "text": "none"},
    ]
    answer = await McpClient(Server(call={"content": content})).call("read", {}, "key", OBJECT)
    assert answer == "found:\n# Hats\n(3 parts that are not text were left out)"


async def test_events_of_a_stream_that_are_not_messages_are_not_read() -> None:
    def streaming(message: JsonObject) -> HttpResponse:
        body = answered(message, {"content": [{"type": "text", "text": "yes"}]}).body.decode()
        pings = "event: ping\ndata: are you there?\n\n"
        stream = f": hello\n\n{pings}event:message\ndata: {body}\n\n{pings}".replace("\n", "\r\n")
        return HttpResponse(200, {"content-type": "text/event-stream"}, stream.encode())

    assert await McpClient(Server(call=streaming)).call("search", {}, "key", OBJECT) == "yes"


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        ("application/json", "\ufeff{}"),
        ("text/event-stream", "\ufeffdata: {}\n\n"),
        ("Text/Event-Stream; charset=utf-8", "data: {}\n\n"),
        ("text/event-stream", "data: searching\n\ndata: {}\n\n"),
        ("text/event-stream", "data: {}\n\ndata: [DONE]\n\n"),
        ("text/event-stream", "id: 0\rdata\r\r: still here\revent: message\rdata: {}\r"),
    ],
    ids=["a byte order mark", "in a stream", "capitals", "a text before", "a text after", "carriage returns"],
)
async def test_an_answer_is_found_in_whatever_surrounds_it(kind: str, form: str) -> None:
    def respond(message: JsonObject) -> HttpResponse:
        body = answered(message, {"content": [{"type": "text", "text": "yes"}]}).body.decode()
        return HttpResponse(200, {"content-type": kind}, form.replace("{}", body).encode())

    assert await McpClient(Server(call=respond)).call("search", {}, "key", OBJECT) == "yes"


async def test_an_answer_in_a_stream_is_noticed_before_the_stream_ends() -> None:
    """The first message of a stream is not the answer, and an answer that is not a stream ends on its own."""
    asked: list[tuple[JsonObject, Until]] = []

    class Noting(Server):
        async def __call__(
            self, message: JsonObject, headers: Mapping[str, str], key: str | None, until: Until | None
        ) -> HttpResponse:
            if until is not None:
                asked.append((message, until))
            return await super().__call__(message, headers, key, until)

    await McpClient(Noting(call={"content": []})).call("search", {}, "key", OBJECT)
    assert [message["method"] for message, _ in asked] == ["server/discover", "initialize", "tools/call"]
    message, until = asked[-1]
    answer = answered(message, {}).body
    stream = b'event: message\ndata: {"jsonrpc": "2.0", "method": "notifications/progress"}\n\ndata: ' + answer
    pieces = [stream[start : start + 7] for start in range(0, len(stream), 7)]
    assert [until(piece) for piece in (*pieces, b"\n", b"\n")] == [False] * (len(pieces) + 1) + [True]
    assert not any(asked[0][1](piece) for piece in (answered(asked[0][0], {}).body, b"\n\ndata: {}\n\n"))


DEEP = '{"jsonrpc": "2.0", "id": %s, "result": ' + '{"a":' * 70 + "1" + "}" * 71


@pytest.mark.parametrize(
    ("kind", "form"),
    [("application/json", DEEP), ("text/event-stream", f"data: {DEEP}\n\n")],
    ids=["JSON", "events"],
)
async def test_an_answer_that_is_nested_too_deeply_is_reported_as_that(kind: str, form: str) -> None:
    def respond(message: JsonObject) -> HttpResponse:
        return HttpResponse(200, {"content-type": kind}, (form % message["id"]).encode())

    server = Server(call=respond)
    with pytest.raises(UpstreamFailed, match="nested deeper than 64 levels"):
        await McpClient(server).call("search", {}, "key", OBJECT)
    assert server.until is not None
    assert server.until(respond(server.messages[-1]).body) == (kind != "application/json")


async def test_the_id_of_an_answer_may_be_a_text() -> None:
    def respond(message: JsonObject) -> HttpResponse:
        return answered({**message, "id": str(message["id"])}, {"content": [{"type": "text", "text": "yes"}]})

    assert await McpClient(Server(call=respond)).call("search", {}, "key", OBJECT) == "yes"


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
async def test_numbers_that_json_does_not_have_reach_no_model(number: float) -> None:
    with pytest.raises(UpstreamFailed, match="a number that JSON does not have") as refused:
        await McpClient(Server(call={"structuredContent": [number]})).call("search", {}, "key", OBJECT)
    assert refused.value.code == "upstream_failed"
    schema = {"type": "object", "properties": {"price": {"maximum": number}}}
    assert await McpClient(Server(list=listed(inputSchema=schema))).tools({"search"}) == []


@pytest.mark.parametrize(
    ("status", "kind"), [(400, UpstreamFailed), (404, UpstreamFailed), (429, Unavailable), (503, Unavailable)]
)
async def test_a_status_that_is_not_success_is_an_error(status: int, kind: type[RetainError]) -> None:
    with pytest.raises(kind) as raised:
        await McpClient(Server(call=HttpResponse(status, {}, b""))).call("search", {}, "key", OBJECT)
    assert raised.value.code == "upstream_status"


@pytest.mark.parametrize("session", ["", "a\nb", "é", "s" * 1_025])
async def test_a_session_that_cannot_be_a_header_is_refused(session: str) -> None:
    def begin(message: JsonObject) -> HttpResponse:
        return answered(message, {"protocolVersion": "2025-11-25"}, **{"mcp-session-id": session})

    with pytest.raises(UpstreamFailed):
        await McpClient(Server(initialize=begin, list=listed())).tools({"search"})


async def test_a_server_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(UpstreamFailed):
        await McpClient(Server(initialize={"protocolVersion": "1999-01-01"}, list=listed())).tools({"search"})


async def test_a_server_that_was_made_for_2024_11_05_lists_its_tools() -> None:
    server = Server(initialize={"protocolVersion": "2024-11-05"}, list=listed())
    assert [tool.name for tool in await McpClient(server).tools({"search"})] == ["search"]


async def test_a_session_that_ended_is_begun_again_once_and_the_call_keeps_its_key() -> None:
    ended = iter([{"content": []}, HttpResponse(404, {}, b""), {"content": [{"type": "text", "text": "yes"}]}])
    server = Server(call=lambda message: next(ended))
    client = McpClient(server)
    await client.call("search", {}, "one", OBJECT)
    assert await client.call("search", {}, "two", OBJECT) == "yes"
    calls = [(headers["mcp-session-id"], key) for method, headers, key in server.seen if method == "tools/call"]
    assert calls == [("s2", "one"), ("s2", "two"), ("s7", "two")]


@pytest.mark.parametrize("status", [401, 403])
async def test_a_session_of_a_credential_that_was_replaced_is_begun_again(status: int) -> None:
    ended = iter([{"content": []}, HttpResponse(status, {}, b""), {"content": []}, HttpResponse(status, {}, b"")])
    server = Server(call=lambda message: next(ended))
    client = McpClient(server)
    await client.call("search", {}, "one", OBJECT)
    await client.call("search", {}, "two", OBJECT)
    calls = [(headers["mcp-session-id"], key) for method, headers, key in server.seen if method == "tools/call"]
    assert calls == [("s2", "one"), ("s2", "two"), ("s7", "two")]
    server.answers["discover"] = HttpResponse(status, {}, b"")  # whatever the session, the credential is refused
    with pytest.raises(UpstreamFailed) as raised:
        await client.call("search", {}, "three", OBJECT)
    assert raised.value.details["upstream_status"] == status
    assert server.methods().count("tools/call") == 4


async def test_a_server_that_is_away_leaves_what_is_known(caplog: pytest.LogCaptureFixture) -> None:
    now = [0]
    config, server = McpServerConfig(tools=("search",)), Server(list=listed())
    served = ServedTools(lambda: now[0])
    assert len(await served.tools("acme", "shop", config, McpClient(server), kept())) == 1
    server.answers["list"] = Unavailable("away", code="upstream_unreachable")
    assert len(await served.tools("acme", "shop", config, McpClient(server), kept())) == 1
    assert caplog.records == []
    now[0] = LISTED_MS
    [tool] = await served.tools("acme", "shop", config, McpClient(server), kept())
    assert tool.spec.name == "shop__search"
    assert await served.tools("other", "shop", config, McpClient(server), kept()) == []
    assert [record.message for record in caplog.records] == ["an MCP server did not list its tools"] * 2
    assert server.methods().count("tools/list") == 3


async def test_the_log_says_with_which_status_a_server_refused_to_list_its_tools(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server(discover=HttpResponse(401, {}, b""))
    assert (
        await ServedTools(lambda: 0).tools("acme", "shop", McpServerConfig(tools=("a",)), McpClient(server), kept())
        == []
    )
    [record] = caplog.records
    logged = record.__dict__
    assert (logged["server"], logged["code"], logged["upstream_status"]) == ("shop", "upstream_status", 401)


async def test_an_instance_keeps_its_tools_when_the_isolate_has_ended_and_the_server_is_away(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config, server, lists = McpServerConfig(tools=("search", "refund")), Server(list=listed(inputSchema=SCHEMA)), kept()
    [first] = await ServedTools(lambda: 0).tools("acme", "shop", config, McpClient(server), lists)
    server.answers["list"] = server.answers["call"] = Unavailable("away", code="upstream_unreachable")
    [tool] = await ServedTools(lambda: 0).tools("acme", "shop", config, McpClient(server), lists)
    assert tool.spec == first.spec
    assert caplog.records[-1].__dict__["known"] == 1
    with pytest.raises(Unavailable):
        await tool.call({}, CallContext("run", 1, 0))
    narrower = McpServerConfig(tools=("refund",))
    assert await ServedTools(lambda: 0).tools("acme", "shop", narrower, McpClient(server), lists) == []
    server.answers["list"] = NoSuchTool("the tenant has no such tool")
    assert await ServedTools(lambda: 0).tools("acme", "shop", config, McpClient(server), lists) == []
    assert lists.tools("shop") == []
    server.answers["list"] = listed()
    assert await ServedTools(lambda: 0).tools("acme", "shop", config, McpClient(server), lists) != []
    server.answers["list"] = {"tools": []}
    assert await ServedTools(lambda: 0).tools("acme", "shop", config, McpClient(server), lists) == []
    assert lists.tools("shop") == []


@pytest.mark.parametrize(
    ("hints", "idempotent", "expected"),
    [
        ({}, None, False),
        ({"readOnlyHint": True}, None, True),
        ({"idempotentHint": True}, None, True),
        ({"readOnlyHint": "yes"}, None, False),
        ({"readOnlyHint": True}, (), False),
        ({}, ("search",), True),
    ],
)
async def test_a_call_may_be_repeated_as_the_definition_says_or_else_the_server(
    hints: object, idempotent: tuple[str, ...] | None, expected: bool
) -> None:
    config = McpServerConfig(tools=("search",), idempotent=idempotent)
    server = Server(list=listed(annotations=hints), call={"content": [], "structuredContent": {"a": 1}})
    [tool] = await ServedTools(lambda: 0).tools("acme", "shop", config, McpClient(server), kept())
    assert tool.idempotent is expected
    assert (await tool.call({}, CallContext("run", 1, 0))).content == '{"a": 1}'
    assert server.seen[-1][2] == "run.1.0"


@pytest.mark.parametrize(
    ("servers", "tools"),
    [
        ({"shop": {"tools": ["a.b", "a_b"]}}, []),
        ({"shop": {"tools": ["x"]}}, ["shop__x"]),
        ({"shop": {"tools": ["x" * (MAX_SERVED_NAME - len("shop__") + 1)]}}, []),
        ({"shop": {"tools": []}}, []),
        ({"shop": {"tools": ["x"], "approval": ["y"]}}, []),
        ({"shop": {"tools": ["x y"]}}, []),
    ],
)
def test_a_definition_whose_names_collide_or_are_too_long_is_refused(servers: object, tools: list[str]) -> None:
    about = {"type": "agent", "description": "d", "instructions": "i"}
    longest = {"shop": {"tools": ["x" * (MAX_SERVED_NAME - len("shop__"))]}}
    AgentDefinition.model_validate({**about, "mcp_servers": longest})
    with pytest.raises(ValidationError):
        AgentDefinition.model_validate({**about, "mcp_servers": servers, "tools": tools})


def test_the_model_s_names_have_the_server_s_and_no_dots() -> None:
    servers = {"shop": McpServerConfig(tools=("orders.find", "Refund")), "mail": McpServerConfig(tools=("send-now",))}
    assert names_of(servers) == ("shop__orders_find", "shop__Refund", "mail__send-now")


async def test_a_definition_has_only_the_tools_that_it_names() -> None:
    server = Server(list={"tools": [{"name": name, "inputSchema": OBJECT} for name in ("search", "refund")]})
    served = ServedTools(lambda: 0)
    for name in ("search", "refund", "search"):
        [tool] = await served.tools("acme", "shop", McpServerConfig(tools=(name,)), McpClient(server), kept())
        assert tool.spec.name == f"shop__{name}"
    assert server.methods().count("tools/list") == 2


MODERN = {"supportedVersions": ["2026-07-28"]}


async def test_a_server_of_2026_07_28_is_asked_once_what_it_speaks_and_needs_no_session() -> None:
    server = Server(discover=MODERN, list=listed(), call={"content": [], "resultType": "complete"})
    client = McpClient(server)
    await client.tools({"search"})
    await client.call("search", {"words": "a"}, "key", OBJECT)
    assert server.methods() == ["server/discover", "tools/list", "tools/call"]
    for method, headers, _ in server.seen:
        assert (headers["mcp-protocol-version"], headers["mcp-method"]) == ("2026-07-28", method)
    assert server.seen[-1][1]["mcp-name"] == "search"
    assert all(
        message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        for message in server.messages
    )


@pytest.mark.parametrize(
    "discover",
    [
        HttpResponse(404, {}, b""),
        HttpResponse(500, {}, b"oops"),
        HttpResponse(200, {}, b"<html>"),
        {"supportedVersions": ["2025-11-25"]},
        {"supportedVersions": "all"},
        lambda message: refused(message, -32601, status=404),
        lambda message: refused(message, -32022, {"supported": ["2025-11-25"]}),
        lambda message: refused(message, -32022),
    ],
    ids=["404", "500", "not JSON", "handshake", "not a list", "no such method", "unsupported", "unsupported, bare"],
)
async def test_a_server_that_does_not_say_that_it_speaks_2026_07_28_is_greeted(discover: object) -> None:
    server = Server(discover=discover, list=listed())
    assert len(await McpClient(server).tools({"search"})) == 1
    assert server.methods() == ["server/discover", "initialize", "notifications/initialized", "tools/list"]


async def test_a_server_that_speaks_only_later_versions_is_refused() -> None:
    server = Server(discover=lambda message: refused(message, -32022, {"supported": ["2027-01-01"]}))
    with pytest.raises(UpstreamFailed, match="speaks no version"):
        await McpClient(server).tools({"search"})
    assert server.methods() == ["server/discover"]


@pytest.mark.parametrize("status", [401, 403, 429, 503])
async def test_a_server_that_refuses_the_caller_or_is_away_says_nothing_of_what_it_speaks(status: int) -> None:
    server = Server(discover=HttpResponse(status, {}, b""), list=listed())
    client = McpClient(server)
    with pytest.raises(RetainError) as raised:
        await client.tools({"search"})
    assert raised.value.details["upstream_status"] == status
    server.answers["discover"] = MODERN
    await client.tools({"search"})
    assert server.methods() == ["server/discover", "server/discover", "tools/list"]


@pytest.mark.parametrize(
    "refusal",
    [
        HttpResponse(400, {}, b"no session"),
        lambda message: refused(message, -32022),
        lambda m: refused(m, -32601, status=404),
    ],
    ids=["400", "unsupported", "no such method"],
)
async def test_a_server_that_became_an_earlier_one_is_agreed_with_again_and_the_call_keeps_its_key(
    refusal: object,
) -> None:
    yes = {"content": [{"type": "text", "text": "yes"}]}
    calls = iter([yes, refusal, yes])

    def call(message: JsonObject) -> object:
        planned = next(calls)
        return planned(message) if callable(planned) else planned

    server = Server(discover=MODERN, call=call)
    client = McpClient(server)
    await client.call("search", {}, "one", OBJECT)
    server.answers["discover"] = HttpResponse(400, {}, b"")
    assert await client.call("search", {}, "two", OBJECT) == "yes"
    assert [key for method, _, key in server.seen if method == "tools/call"] == ["one", "two", "two"]
    assert server.seen[-1][1]["mcp-protocol-version"] == "2025-11-25"


async def test_a_server_that_became_a_later_one_is_agreed_with_again() -> None:
    calls = iter([{"content": []}, HttpResponse(400, {}, b"no version"), {"content": []}])
    server = Server(call=lambda message: next(calls))
    client = McpClient(server)
    await client.call("search", {}, "one", OBJECT)
    server.answers["discover"] = MODERN
    await client.call("search", {}, "two", OBJECT)
    assert server.seen[-1][1]["mcp-protocol-version"] == "2026-07-28"


@pytest.mark.parametrize("status", [400, 404])
@pytest.mark.parametrize("code", [-32602, -32603, -32000])
@pytest.mark.parametrize("discover", [MODERN, HttpResponse(400, {}, b"")], ids=["2026-07-28", "greeted"])
async def test_a_call_that_the_server_answers_with_an_error_is_not_repeated(
    discover: object, code: int, status: int
) -> None:
    server = Server(discover=discover, list=listed(), call=lambda message: refused(message, code, status=status))
    client = McpClient(server)
    await client.tools({"search"})
    with pytest.raises(UpstreamFailed, match="it refused the request: no"):
        await client.call("search", {}, "one", OBJECT)
    assert server.methods().count("tools/call") == 1


async def test_an_ended_session_that_is_refused_with_the_id_of_a_call_is_begun_again_by_the_next_call() -> None:
    server = Server(list=listed(), call={"content": []})
    client = McpClient(server)
    await client.tools({"search"})
    server.answers["call"] = lambda message: refused(message, -32001, status=404)
    with pytest.raises(UpstreamFailed):
        await client.call("search", {}, "one", OBJECT)
    server.answers["call"] = {"content": []}
    await client.call("search", {}, "two", OBJECT)
    assert server.methods().count("initialize") == 2


async def test_a_result_that_asks_for_input_is_a_failed_call() -> None:
    server = Server(discover=MODERN, call={"resultType": "input_required", "inputRequests": {}})
    with pytest.raises(UpstreamFailed, match="asks for input"):
        await McpClient(server).call("search", {}, "one", OBJECT)


SCHEMA = {
    **OBJECT,
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "deep": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "Dry-Run"}}},
        "count": {"type": "integer", "default": {"x-mcp-header": "no mark"}},
    },
}


async def test_marked_arguments_are_repeated_as_headers() -> None:
    server = Server(discover=MODERN, call={"content": []})
    client = McpClient(server)
    for arguments in ({"region": "eu", "deep": {"dry": True}}, {"region": "", "deep": 3}, {"region": None}, {}):
        await client.call("search", arguments, "key", SCHEMA)  # type: ignore[arg-type]
    sent = [{n: v for n, v in headers.items() if n.startswith("mcp-param-")} for _, headers, _ in server.seen[1:]]
    assert sent == [
        {"mcp-param-region": "eu", "mcp-param-dry-run": "true"},
        {"mcp-param-region": "=?base64??="},
        {},
        {},
    ]


@pytest.mark.parametrize(
    "properties",
    [
        {"a": {"type": "string", "x-mcp-header": "not a token"}},
        {"a": {"type": "string", "x-mcp-header": 1}},
        {"a": {"type": "object", "x-mcp-header": "A"}},
        {"a": {"type": "string", "x-mcp-header": "A"}, "b": {"type": "string", "x-mcp-header": "a"}},
        {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}},
    ],
    ids=["not a token", "not a text", "not a scalar", "twice", "not by properties alone"],
)
async def test_a_tool_with_marks_that_cannot_be_followed_is_not_offered(properties: object) -> None:
    marked = {**OBJECT, "properties": properties}
    assert await McpClient(Server(discover=MODERN, list=listed(inputSchema=marked))).tools({"search"}) == []
    assert await McpClient(Server(list=listed(inputSchema=marked))).tools({"search"}) != []


def refused(message: JsonObject, code: int, data: object = None, *, status: int = 400) -> HttpResponse:
    error = {"code": code, "message": "no", "data": data}
    body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode()
    return HttpResponse(status, {"content-type": "application/json"}, body)
