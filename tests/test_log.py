"""Structured logs: one JSON object per line, with its context, and never with a secret."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import logging.handlers
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from retain import log
from retain.errors import Unavailable

API_KEY = "retain_acme-corp_Zm9vYmFyYmF6cXV4Zm9vYmFyYmF6cXV4Zm9vYmFyYmE"
PROVIDER_KEY = "sk-ant-api03-Zm9vYmFyYmF6cXV4"
JWT = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dGhpcyBpcyBhIHNpZ25hdHVyZQ"

_logger = logging.getLogger("retain.test")


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    logger = logging.getLogger("retain")
    before = (logger.level, logger.propagate, list(logger.handlers))
    log.configure()
    yield
    logger.setLevel(before[0])
    logger.propagate = before[1]
    logger.handlers[:] = before[2]


def _lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_a_line_is_one_json_object_with_level_time_logger_message_and_extra(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _logger.info("stored %d of\n%s", 2, "many", extra={"tenant": "acme", "count": 2, "names": ["é", "🦀"]})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    line = json.loads(out)
    at_ms = line.pop("at_ms")
    assert isinstance(at_ms, int)
    assert at_ms > 1_600_000_000_000
    assert line == {
        "level": "info",
        "logger": "retain.test",
        "message": "stored 2 of\nmany",
        "tenant": "acme",
        "count": 2,
        "names": ["é", "🦀"],
    }


def test_configuring_twice_prints_once(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    log.configure()
    _logger.info("once")
    assert [line["message"] for line in _lines(capsys)] == ["once"]


def test_lines_below_the_level_are_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    _logger.debug("quiet")
    log.configure(logging.DEBUG)
    _logger.debug("loud")
    assert [line["message"] for line in _lines(capsys)] == ["loud"]


def test_handlers_of_the_root_logger_do_not_see_what_is_redacted(capsys: pytest.CaptureFixture[str]) -> None:
    seen = logging.handlers.BufferingHandler(10)
    logging.getLogger().addHandler(seen)
    try:
        _logger.warning("authorization: Bearer %s", API_KEY)
    finally:
        logging.getLogger().removeHandler(seen)
    assert seen.buffer == []
    assert len(_lines(capsys)) == 1


def test_a_failure_carries_its_traceback_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise Unavailable(f"the upstream said {API_KEY}")
    except Unavailable:
        _logger.exception("failed", stack_info=True)
    (line,) = _lines(capsys)
    assert line["level"] == "error"
    assert "Traceback" in line["exception"]
    assert "Unavailable: the upstream said [redacted]" in line["exception"]
    assert "test_log.py" in line["stack"]


def test_extra_cannot_replace_what_every_line_has(capsys: pytest.CaptureFixture[str]) -> None:
    _logger.info("true", extra={"level": "forged", "at_ms": 0, "logger": "forged"})
    (line,) = _lines(capsys)
    assert (line["level"], line["logger"], line["message"]) == ("info", "retain.test", "true")
    assert line["at_ms"] > 0


def test_bound_fields_are_on_every_line_inside_the_block_and_not_after(capsys: pytest.CaptureFixture[str]) -> None:
    with log.bind(request_id="r1", tenant="acme"):
        _logger.info("one")
        with log.bind(run_id="run", tenant="other"):
            _logger.info("two", extra={"run_id": "from extra"})
        _logger.info("three")
    _logger.info("four")
    shown = [{name: line.get(name) for name in ("request_id", "tenant", "run_id")} for line in _lines(capsys)]
    assert shown == [
        {"request_id": "r1", "tenant": "acme", "run_id": None},
        {"request_id": "r1", "tenant": "other", "run_id": "from extra"},
        {"request_id": "r1", "tenant": "acme", "run_id": None},
        {"request_id": None, "tenant": None, "run_id": None},
    ]


def test_bound_fields_are_gone_after_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Unavailable), log.bind(request_id="r1"):
        raise Unavailable("no")
    _logger.info("after")
    assert "request_id" not in _lines(capsys)[0]


async def test_concurrent_requests_do_not_mix_their_fields(capsys: pytest.CaptureFixture[str]) -> None:
    async def request(name: str) -> None:
        with log.bind(request_id=name):
            for _ in range(3):
                await asyncio.sleep(0)
                _logger.info(name)

    await asyncio.gather(*(request(f"r{number}") for number in range(5)))
    lines = _lines(capsys)
    assert len(lines) == 15
    assert all(line["request_id"] == line["message"] for line in lines)


async def test_tasks_started_inside_a_block_keep_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    async def later() -> None:
        await asyncio.sleep(0)
        _logger.info("later")

    with log.bind(run_id="r1"):
        task = asyncio.ensure_future(later())
    await task
    assert _lines(capsys)[0]["run_id"] == "r1"


@pytest.mark.parametrize(
    "name",
    [
        "authorization",
        "Authorization",
        "proxy-authorization",
        "CF_Authorization",
        "api_key",
        "x-api-key",
        "apiKey",
        "CHAT_API_KEY",
        "token",
        "accessToken",
        "password",
        "passwd",
        "secret",
        "client_secret",
        "credential",
        "upstream-credentials",
        "CREDENTIALS_KEY",
        "cookie",
        "set-cookie",
        "cf-access-jwt-assertion",
        "private_key",
    ],
)
@pytest.mark.parametrize("value", ["x", "a b\nc", ["x"], {"a": "x"}, b"x", ("x", 1)], ids=repr)
def test_values_under_a_name_that_says_secret_are_replaced(
    name: str, value: object, capsys: pytest.CaptureFixture[str]
) -> None:
    _logger.info("m", extra={name: value, "nested": [{name: value}]})
    (line,) = _lines(capsys)
    assert line[name] == "[redacted]"
    assert line["nested"] == [{name: "[redacted]"}]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("input_tokens", 12),
        ("max_output_tokens", 1024.5),
        ("token", None),
        ("has_token", True),
        ("key", "agent_working:acme:i1:draft"),
        ("task", "task-consolidation-of-memories"),
        ("author", "someone"),
        ("basic", "basic information about bearers"),
        ("address", "https://example.com/path?q=a@b"),
        ("id", "01J9ZK3V5Q8XG7R2M4N6P8S0T1"),
        ("hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
    ],
)
def test_what_is_not_a_secret_stays(name: str, value: object, capsys: pytest.CaptureFixture[str]) -> None:
    _logger.info("m", extra={name: value})
    assert _lines(capsys)[0][name] == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"key {API_KEY} refused", "key [redacted] refused"),
        (f"key={API_KEY}", "key=[redacted]"),
        (f"x{API_KEY}", "x[redacted]"),
        (f"openai said no to {PROVIDER_KEY}.", "openai said no to [redacted]."),
        (f"token was {JWT}", "token was [redacted]"),
        (f"{JWT[:60]}", "[redacted]"),
        ("sent Bearer abcdefgh12345678", "sent [redacted]"),
        ("sent basic dXNlcjpwYXNzd29yZA==", "sent [redacted]"),
        ("GET https://user:hunter2@example.com/x", "GET https://[redacted]@example.com/x"),
        ("login password=hunter2, then", "login [redacted], then"),
        ("Secret: 'two words' end", "[redacted] end"),
        ("{'api_key': \"two words\", 'a': 1}", "{'[redacted], 'a': 1}"),
        ("password='it\\'s two', a=1", "[redacted], a=1"),
        ("password=['one', 'two'], a=1\nnext", "[redacted]\nnext"),
        ('password="open ended\nnext', "[redacted]\nnext"),
        ("cookie: a=hunter2; b=hunter3\nnext", "[redacted]\nnext"),
        ("authorization: Digest username=x\nnext", "[redacted]\nnext"),
    ],
)
def test_secrets_in_a_text_are_replaced_and_the_rest_stays(text: str, expected: str) -> None:
    assert log.redact_text(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "Max retries exceeded with url: /x?sig=a%2Fb&k=c (Caused by",
            "Max retries exceeded with url: /x?[redacted] (Caused by",
        ),
        (
            "GET 'https://user:hunter2@example.com/x?code=1' failed",
            "GET 'https://[redacted]@example.com/x?[redacted]' failed",
        ),
        ("what? a = b", "what? a = b"),
        ("return x if y else '?'", "return x if y else '?'"),
    ],
)
def test_the_text_of_an_error_has_no_query_of_an_address(text: str, expected: str) -> None:
    assert log.redact_failure(text) == expected


def test_a_logged_exception_has_no_query_of_an_address(capsys: pytest.CaptureFixture[str]) -> None:
    try:
        raise ConnectionError("no answer from https://example.com/x?sig=hunter2")
    except ConnectionError:
        _logger.exception("failed")
    assert "hunter2" not in capsys.readouterr().out


def test_a_message_is_redacted_with_its_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    _logger.info("called with %s and %s", f"Bearer {API_KEY}", {"password": "hunter2"})
    out = capsys.readouterr().out
    assert API_KEY not in out
    assert "hunter2" not in out


@dataclasses.dataclass(frozen=True)
class _Login:
    user: str
    password: str


class _Kind(StrEnum):
    FACT = "fact"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"\0\1", "[2 bytes]"),
        (float("nan"), "nan"),
        (float("-inf"), "-inf"),
        ((1, 2), [1, 2]),
        ({3}, [3]),
        ({1: {None: "x"}}, {"1": {"None": "x"}}),
        (_Login("ada", "hunter2"), {"user": "ada", "password": "[redacted]"}),
        (_Kind.FACT, "fact"),
        (Path("a/b"), "a/b"),
        (Unavailable("away"), "away"),
        ("x" * 10_000, "x" * log.MAX_TEXT_CHARACTERS + "…"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_value_becomes_json(value: object, expected: object, capsys: pytest.CaptureFixture[str]) -> None:
    _logger.info("m", extra={"value": value})
    assert _lines(capsys)[0]["value"] == expected


def test_a_value_that_contains_itself_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    endless: list[object] = []
    endless.append(endless)
    _logger.info("m", extra={"value": endless})
    assert "[too deep]" in capsys.readouterr().out


def test_a_value_that_cannot_be_shown_neither_fails_the_caller_nor_leaks_the_rest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no")

    _logger.info("m %s", API_KEY, extra={"value": Broken(), "other": API_KEY})
    captured = capsys.readouterr()
    line = json.loads(captured.out)
    assert (line["level"], line["message"]) == ("error", "unloggable: RuntimeError")
    assert API_KEY not in captured.out + captured.err


_alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_random = st.text(_alphabet, min_size=20, max_size=60)
_tenants = st.from_regex(r"[a-z0-9][a-z0-9-]{0,39}", fullmatch=True)
_patterned = st.one_of(
    st.builds("retain_{}_{}".format, _tenants, _random),
    st.builds("Bearer {}".format, _random),
    st.builds("eyJ{}.{}.{}".format, _random, _random, _random),
)
_plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10)
_names = st.text("abcdefghij_", min_size=1, max_size=8).map(lambda name: f"x_{name}")
_secret_names = st.sampled_from(
    ["authorization", "X-Api-Key", "token", "PASSWORD", "credential", "cookie", "client_secret"]
)


def _around(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return values that hold the leaf somewhere: in mappings, lists, tuples and data classes, among other things."""

    def wrapped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        return st.one_of(
            st.builds(lambda name, value, other: {name: value, "other": other}, _names, inner, _plain),
            st.builds(lambda value, others: [*others, value], inner, st.lists(_plain, max_size=3)),
            st.builds(lambda value, other: (value, other), inner, _plain),
            st.builds(_Login, user=inner, password=st.just("x")),
            st.builds(ValueError, inner),
        )

    return st.recursive(leaf, wrapped, max_leaves=4)


def _line_with(extra: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str]) -> str:
    _logger.info("%s", message, extra=extra)
    captured = capsys.readouterr()
    json.loads(captured.out)
    return captured.out + captured.err


_shared_capture = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


@_shared_capture
@given(data=st.data(), secret=_patterned, before=st.text(max_size=10), after=st.text(max_size=10))
def test_a_text_that_looks_like_a_secret_never_appears(
    data: st.DataObject, secret: str, before: str, after: str, capsys: pytest.CaptureFixture[str]
) -> None:
    core = secret.removeprefix("Bearer ")
    assume(core not in before + after)
    text = before + secret + after
    value = data.draw(_around(st.just(text)))
    assert core not in _line_with({"value": value}, text, capsys)


@_shared_capture
@given(data=st.data(), secret=_random, secret_name=_secret_names, name=_names)
def test_a_value_under_a_secret_name_never_appears_whatever_it_looks_like(
    data: st.DataObject, secret: str, secret_name: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    hidden = st.builds(lambda value: {secret_name: value}, _around(st.just(secret)))
    assert secret not in _line_with({name: data.draw(_around(hidden))}, "m", capsys)


@_shared_capture
@given(value=st.recursive(_plain, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=10))
def test_every_value_gives_one_line_of_json(value: object, capsys: pytest.CaptureFixture[str]) -> None:
    _logger.info("m", extra={"value": value})
    out = capsys.readouterr().out
    assert out.endswith("\n")
    assert out.count("\n") == 1
    assert json.loads(out)["message"] == "m"
