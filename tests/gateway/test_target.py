from __future__ import annotations

from urllib.parse import unquote, urlsplit

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from retain.errors import InvalidInput, LimitExceeded
from retain.gateway.provisioning import tool_entry
from retain.gateway.target import as_text, check_length, check_target, parse_url_template
from tests.gateway.setting import TENANT, TOOL, config
from tests.ports import raises

HOSTILE = {
    "plain http": "http://api.example.com",
    "another scheme": "ftp://api.example.com",
    "javascript": "javascript:alert(1)",
    "no scheme": "//api.example.com",
    "scheme in capitals": "HTTPS://api.example.com",
    "user information": "https://tool.example@evil.example",
    "user and password": "https://a:b@api.example.com",
    "an empty user": "https://@api.example.com",
    "a backslash": "https://api.example.com\\@evil.example",
    "an encoded at": "https://api.example.com%40evil.example",
    "capitals": "https://API.example.com",
    "a trailing dot": "https://api.example.com.",
    "an empty label": "https://api..example.com",
    "a leading dot": "https://.example.com",
    "a label that starts with a hyphen": "https://-api.example.com",
    "a label that ends with a hyphen": "https://api-.example.com",
    "an underscore": "https://my_api.example.com",
    "an umlaut": "https://m\u00fcller.example",
    "a full stop of another script": "https://api\u3002example\u3002com",
    "a host of one label": "https://intranet",
    "localhost": "https://localhost",
    "a name below localhost": "https://api.localhost",
    "a local name": "https://printer.local",
    "an internal name": "https://metadata.google.internal",
    "a home name": "https://router.home.arpa",
    "ipv4": "https://93.184.216.34",
    "loopback": "https://127.0.0.1",
    "loopback in short": "https://127.1",
    "loopback as a decimal": "https://2130706433",
    "loopback in hex": "https://0x7f000001",
    "loopback in dotted hex": "https://0x7f.0x0.0x0.0x1",
    "loopback in octal": "https://0177.0.0.1",
    "a host that ends in a number": "https://api.example.0x7f",
    "link-local": "https://169.254.169.254",
    "private": "https://10.0.0.1",
    "unspecified": "https://0.0.0.0",
    "ipv6 loopback": "https://[::1]",
    "ipv6": "https://[2001:db8::1]",
    "ipv4 in ipv6": "https://[::ffff:127.0.0.1]",
    "ipv6 with a zone": "https://[fe80::1%25eth0]",
    "an empty host": "https://",
    "an empty port": "https://api.example.com:",
    "port zero": "https://api.example.com:0",
    "a port with a zero in front": "https://api.example.com:0443",
    "a port above the last one": "https://api.example.com:99999",
    "the first port above the last one": "https://api.example.com:65536",
    "a port of http": "https://api.example.com:80",
    "a port of mail": "https://api.example.com:25",
    "the last port below 1024": "https://api.example.com:1023",
    "a port of telephony": "https://api.example.com:5060",
    "a port of a database": "https://db.example.com:5432",
    "a port of a cache": "https://cache.example.com:6379",
    "a name of a company": "https://wiki.corp",
    "a name of a cluster": "https://kubernetes.default.svc",
    "a port that is no number": "https://api.example.com:https",
    "a port with six digits": "https://api.example.com:443443",
    "a space": "https://api.example.com ",
    "a line break": "https://api.example.com\n",
    "a tab inside": "https://api.exa\tmple.com",
    "a null": "https://api.example.com\x00.evil.example",
    "a host that is too long": "https://" + "a." * 123 + "examples",
    "a label that is too long": "https://" + "a" * 64 + ".example",
    "a fragment": "https://api.example.com#@evil.example",
    "a place in the host": "https://{tenant}.example.com",
}


@pytest.mark.parametrize("origin", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_upstream_is_refused(origin: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tool_entry(TENANT, TOOL, config(f"{origin}/orders"))
    assert refused.value.code in ("forbidden_upstream", "invalid_tool_configuration")


@pytest.mark.parametrize("origin", ["http://[::1]:8080", "https://127.0.0.1", "http://localhost:9"])
def test_an_upstream_on_this_machine_needs_the_development_setting(origin: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        tool_entry(TENANT, TOOL, config(f"{origin}/orders"))
    assert refused.value.code == "forbidden_upstream"
    assert tool_entry(TENANT, TOOL, config(f"{origin}/orders"), allow_loopback=True)


@pytest.mark.parametrize("url", ["http://api.example.com/", "https://10.0.0.1/", "https://printer.local/"])
def test_the_development_setting_allows_this_machine_and_nothing_else(url: str) -> None:
    with pytest.raises(InvalidInput):
        tool_entry(TENANT, TOOL, config(url), allow_loopback=True)


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://api.example.com", id="no path"),
        pytest.param("https://api.example.com/v1/orders?format=json&draft=%20", id="path and query"),
        pytest.param("https://api.example.com:8443/orders", id="another port"),
        pytest.param("https://api.example.com:1024/orders", id="the first port from 1024"),
        pytest.param("https://api.example.com:65535/orders", id="the last port"),
        pytest.param("https://api.example.com:443/orders", id="the port of https"),
        pytest.param("https://xn--mller-kva.example/orders", id="an international name"),
        pytest.param("https://1.api.example.com/%7Euser/a.b/..c", id="digits and dots"),
    ],
)
def test_a_public_upstream_is_allowed(url: str) -> None:
    assert tool_entry(TENANT, TOOL, config(url)).value


@pytest.mark.parametrize(
    ("url", "host"),
    [
        pytest.param("https://evil.example/", "api.example.com", id="another host"),
        pytest.param("https://api.example.com:8443/", "api.example.com", id="another port"),
        pytest.param("https://api.example.com/", "api.example.com:443", id="a port the url does not have"),
        pytest.param("https://api.example.com.evil.example/", "api.example.com", id="a longer host"),
        pytest.param("https://api.example.com/", "example.com", id="a parent domain"),
    ],
)
def test_the_upstream_must_be_on_the_tools_own_host(url: str, host: str) -> None:
    with pytest.raises(InvalidInput, match="host"):
        tool_entry(TENANT, TOOL, config(url, host=host))


@pytest.mark.parametrize(
    "path",
    [
        pytest.param("/a/../b", id="a dot segment"),
        pytest.param("/./b", id="a single dot"),
        pytest.param("/a/%2e%2E/b", id="an encoded dot segment"),
        pytest.param("/a b", id="a space"),
        pytest.param("/a\\b", id="a backslash"),
        pytest.param("/\u00fc", id="not ascii"),
        pytest.param("/{order-id}", id="a malformed placeholder"),
        pytest.param("/{}", id="an empty placeholder"),
        pytest.param("/{id", id="an open placeholder"),
        pytest.param("/{id}/{id}", id="a placeholder twice"),
        pytest.param("/a?x={id}", id="a placeholder in the query"),
        pytest.param("/a?x=<", id="a bad character in the query"),
    ],
)
def test_a_malformed_template_is_refused(path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url_template(f"https://api.example.com{path}")
    assert refused.value.code == "invalid_tool_configuration"


TEMPLATE = parse_url_template("https://api.example.com/tenants/{tenant}/orders/{order}.json?draft=1")


@given(tenant=st.text(), order=st.text())
def test_arguments_never_leave_their_segment_of_the_path(tenant: str, order: str) -> None:
    try:
        url = TEMPLATE.expand({"tenant": tenant, "order": order})
    except InvalidInput as error:
        assert error.code == "invalid_arguments"  # refusing is right as well: the next test says when
        return
    parts = urlsplit(url)
    assert (parts.scheme, parts.netloc, parts.query, parts.fragment) == ("https", "api.example.com", "", "")
    empty, first, second, third, last = parts.path.split("/")
    assert (empty, first, third) == ("", "tenants", "orders")
    assert (unquote(second), unquote(last)) == (tenant, f"{order}.json")
    assert url.isascii()
    # What a client makes of it is what was meant: nothing is resolved or decoded on the way.
    assert httpx.URL(url).raw_path.decode() == parts.path


@given(st.text(min_size=1) | st.text("./\\%2eE5cCfF0", min_size=1))
def test_only_empty_dots_separators_and_broken_unicode_are_refused_in_a_path(value: str) -> None:
    template = parse_url_template("https://api.example.com/{value}/x")
    broken = any("\ud800" <= character <= "\udfff" for character in value)
    separating = any(character in "/\\\x7f" or character < " " for character in value)
    encoded = any(part in value.lower() for part in ("%2e", "%2f", "%5c", "%00"))
    refused = value in (".", "..") or broken or separating or encoded
    try:
        template.expand({"value": value})
    except InvalidInput:
        assert refused
    else:
        assert not refused


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"a": ""}, id="empty"),
        pytest.param({}, id="missing"),
        pytest.param({"a": None}, id="null"),
        pytest.param({"a": ["x"]}, id="a list"),
        pytest.param({"a": {"x": 1}}, id="an object"),
        pytest.param({"a": float("nan")}, id="not a number"),
        pytest.param({"a": "\ud800"}, id="half a character"),
    ],
)
def test_an_argument_that_cannot_be_in_a_path_is_refused(arguments: dict[str, object]) -> None:
    template = parse_url_template("https://api.example.com/orders/{a}")
    with pytest.raises(InvalidInput) as refused:
        template.expand(arguments)
    assert refused.value.code == "invalid_arguments"


def test_two_arguments_cannot_make_a_dot_segment_together() -> None:
    template = parse_url_template("https://api.example.com/orders/{a}{b}")
    with pytest.raises(InvalidInput):
        template.expand({"a": ".", "b": "."})
    assert template.expand({"a": ".", "b": "a"}) == "https://api.example.com/orders/.a"


@pytest.mark.parametrize(
    ("value", "text"),
    [(True, "true"), (False, "false"), (7, "7"), (0.5, "0.5"), ("a/b?c#d&e=f%2F", "a%2Fb%3Fc%23d%26e%3Df%252F")],
)
def test_scalars_are_written_as_json_writes_them(value: object, text: str) -> None:
    assert as_text("x", value) == text


def test_invariant_8_a_url_has_a_limit() -> None:
    assert check_length("x" * 16_384)
    with pytest.raises(LimitExceeded):
        check_length("x" * 16_385)


def test_a_target_is_checked_by_scheme_and_authority() -> None:
    check_target("https", "api.example.com", allow_loopback=False)
    with pytest.raises(InvalidInput):
        check_target("http", "api.example.com", allow_loopback=False)


SEPARATORS = {
    "a slash": "a/b",
    "a backslash": "a\\b",
    "a parent": "../../admin",
    "an encoded slash": "a%2fb",
    "an encoded backslash": "a%5Cb",
    "encoded dots": "%2e%2e",
    "dots encoded in part": ".%2E",
    "a null": "a\x00b",
    "an encoded null": "a%00",
    "a line break": "a\r\nb",
    "a delete": "a\x7f",
}


@pytest.mark.parametrize("value", SEPARATORS.values(), ids=SEPARATORS.keys())
def test_an_argument_in_the_path_holds_no_separator_in_any_spelling(value: str) -> None:
    template = parse_url_template("https://api.example.com/orders/{order_id}/lines")
    with pytest.raises(InvalidInput) as refused:
        template.expand({"order_id": value})
    assert (refused.value.code, refused.value.details["path"]) == ("invalid_arguments", "/order_id")
    assert value not in refused.value.message


@pytest.mark.parametrize("value", ["A-1", "50%", "100%25 sure", "a b", "a..b", "ä", "a%20b", "..a"])
def test_an_argument_without_one_is_encoded(value: str) -> None:
    template = parse_url_template("https://api.example.com/orders/{order_id}/lines")
    assert unquote(template.expand({"order_id": value})) == f"https://api.example.com/orders/{value}/lines"


def test_a_credential_in_the_query_is_stored_only_by_whoever_allows_it() -> None:
    asked = config("https://api.example.com/", auth={"kind": "query", "name": "token"})
    with raises(InvalidInput, code="query_credential"):
        tool_entry(TENANT, TOOL, asked)
    assert tool_entry(TENANT, TOOL, asked, allow_query_credential=True).value
