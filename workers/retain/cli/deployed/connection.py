"""A connection to a deployment as an application (with a key) or as an operator (through Access), and its errors."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlsplit

import httpx

from retain.cli.administrator import LOOPBACK, Connect, fits_header, open_client, other_version
from retain.cli.deployed.exit_status import UNREACHABLE, status_of
from retain.cli.deployed.profile import Destination, find_target
from retain.cli.deployed.terminal import one_line, over_lines
from retain.errors import Forbidden, InvalidInput, NotFound, RetainError, Unauthenticated, Unavailable, UpstreamFailed
from retain.errors.codes import ForeignCode
from retain.identifiers import check_tenant
from retain.json_text import read_json

_HTTP_SERVER_ERROR = 500
_ACCESS = ("cf-access-client-id", "cf-access-client-secret")
_CREDENTIALS = ("authorization", *_ACCESS)

Json = dict[str, Any]


class Deployment:
    """What a command asks of one tenant of a deployment.

    A key reaches under `/v1` what an operator has under `/admin`.
    """

    def __init__(self, client: httpx.Client, tenant_id: str, *, with_key: bool) -> None:
        self._client = client
        self.tenant_id = tenant_id
        first = "/v1" if with_key else "/admin"
        self.tenant = f"{first}/tenants/{tenant_id}"
        self.memories = f"{self.tenant}/memories"
        self.runs = f"{first}/agents/{tenant_id}/runs"
        self.agents = f"/v1/agents/{tenant_id}"

    def ask(
        self, method: str, path: str, body: Mapping[str, object] | None = None, query: Mapping[str, str] | None = None
    ) -> Json:
        """Return the JSON of an answer.

        Raises: as `answer`; Unavailable when what answered is not Retain.
        """
        return json_of(self.answer(method, path, query=query, json=body))

    def answer(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """Return an answer that reports success. sent: `query`, and `json` or `content` and `headers`.

        Raises: InvalidInput for what JSON or UTF-8 cannot have; Unavailable when Retain does not answer;
        Unauthenticated, Forbidden, NotFound, UpstreamFailed when it refuses.
        """
        try:
            request = self._client.build_request(method, path, params=sent.pop("query", None), **sent)
        except ValueError as error:  # an infinite number, half of a surrogate pair
            raise InvalidInput(f"what was given cannot be sent: {error}", code=ForeignCode("usage")) from error
        try:
            answer = self._client.send(request)
        except httpx.HTTPError as error:
            raise _silent(error) from error
        if not answer.is_success:
            raise _refusal(answer, _object(answer))
        return answer

    def anonymously(self, path: str) -> httpx.Response:
        """Return what anybody is answered, whatever it reports. Raises: Unavailable when Retain does not answer."""
        request = self._client.build_request("GET", path)
        for name in _CREDENTIALS:
            request.headers.pop(name, None)
        try:
            return self._client.send(request)
        except httpx.HTTPError as error:
            raise _silent(error) from error

    @property
    def is_local(self) -> bool:
        """Whether the deployment is on this machine."""
        return self._client.base_url.host in LOOPBACK

    @contextmanager
    def streamed(self, path: str, headers: Mapping[str, str]) -> Iterator[httpx.Response]:
        """Open a stream of server-sent events. Raises: as `answer`, also for a stream that breaks off."""
        try:
            with self._client.stream("GET", path, headers={"accept": "text/event-stream", **headers}) as answer:
                if not answer.is_success:
                    answer.read()
                    raise _refusal(answer, _object(answer))
                yield answer
        except httpx.HTTPError as error:
            raise _silent(error) from error

    def listed(self, path: str, member: str, query: Mapping[str, str], most: int) -> Iterator[Json]:
        """Yield what a list has, page by page, at most so many. Raises: as `ask`."""
        asked = dict(query)
        while most > 0:
            page = self.ask("GET", path, query=asked)
            entries = page[member][:most]
            yield from entries
            most -= len(entries)
            if page["cursor"] is None:
                return
            asked["cursor"] = page["cursor"]


def _silent(error: httpx.HTTPError) -> Unavailable:
    return Unavailable(f"the deployment did not answer: {error}", code=ForeignCode("unreachable"))


def json_of(answer: httpx.Response) -> Json:
    """Return the JSON object of an answer. Raises: Unavailable when it has none, as what answered is not Retain."""
    found = _object(answer)
    if found is None:
        raise Unavailable("what answered is not Retain: it sent no JSON", code=ForeignCode("unreachable"))
    return found


def _object(answer: httpx.Response) -> Json | None:
    try:
        found = read_json(answer.text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _refusal(answer: httpx.Response, problem: Json | None) -> RetainError:
    if answer.is_redirect:
        return Unauthenticated(
            "the deployment redirects, as Cloudflare Access does to who has no session: give a key, or a service token",
            code=ForeignCode("redirected"),
        )
    message = str((problem or {}).get("detail") or f"the deployment answered {answer.status_code}") + _problems(problem)
    code = ForeignCode(str((problem or {}).get("code") or f"http_{answer.status_code}"))
    kinds: dict[int, Callable[..., RetainError]] = {401: Unauthenticated, 403: Forbidden, 404: NotFound}
    if answer.status_code in kinds:
        return kinds[answer.status_code](message, code=code)
    # A failure with Retain's own problem is an answer; one without comes from what is in front of it.
    more = {"status": answer.status_code, "retry_after": answer.headers.get("retry-after", "")}
    if answer.status_code >= _HTTP_SERVER_ERROR and problem is None:
        return Unavailable(message, code=code, **more)
    return UpstreamFailed(message, code=code, **more)


def _problems(problem: Json | None) -> str:
    """Return what is wrong in each place of a body or a query that does not fit, to follow the message."""
    found = (problem or {}).get("problems")
    named = [one for one in found if isinstance(one, str)] if isinstance(found, list) else []
    return f": {'; '.join(named)}" if named else ""


def add_target(command: argparse.ArgumentParser) -> None:
    """Add the options that name the deployment and how the answer is printed."""
    command.add_argument("--url", help="the deployment's address; its key is in RETAIN_KEY")
    command.add_argument("--profile", help="a deployment of the file of profiles")
    command.add_argument("--tenant", help="its id; the profile's, or RETAIN_TENANT, if absent")
    command.add_argument("--json", action="store_true", help="print JSON, an object on each line")


Targets = Callable[[argparse.Namespace], Destination]
"""Returns the deployment that the options name. Raises: InvalidInput when they name none."""


def named_target(options: argparse.Namespace) -> Destination:
    """Return the deployment that options name, with the key that belongs to it. Raises: InvalidInput when they name none."""
    return find_target(options.url, options.profile, options.tenant)


def run_deployed(options: argparse.Namespace, connect: Connect = open_client, target_of: Targets = named_target) -> int:
    """Run `options.does` with the deployment that the options name; return the process's exit status."""
    does: Callable[[argparse.Namespace, Deployment], int] = options.does
    try:
        target = target_of(options)
        tenant_id = tenant_of(target)
        with connect(address_of(target)) as client:
            present(target, client)
            return does(options, Deployment(client, tenant_id, with_key=target.key is not None))
    except KeyError as missing:
        print(other_version(missing), file=sys.stderr)
        return UNREACHABLE
    except RetainError as error:
        print(f"{over_lines(error.message)} ({one_line(error.code)})", file=sys.stderr)
        return status_of(error)


def print_json(value: object) -> None:
    """Print a value as one line of JSON in ASCII."""
    print(json.dumps(value))


def segment(text: str) -> str:
    """Return a text as one segment of a path."""
    return quote(text, safe="")


def present(target: Destination, client: httpx.Client) -> None:
    """Let a client send the key of a destination that has one. A service token of Access would make it somebody else."""
    if target.key is not None:
        for name in _ACCESS:
            client.headers.pop(name, None)
        client.headers["authorization"] = f"Bearer {target.key}"


def tenant_of(target: Destination) -> str:
    """Return the tenant of a destination. Raises: InvalidInput when none is named."""
    if target.tenant_id is None:
        raise InvalidInput("name a tenant: --tenant, RETAIN_TENANT, or one in the profile", code=ForeignCode("usage"))
    return check_tenant(target.tenant_id)


def address_of(target: Destination) -> str:
    """Return the address of a destination. Raises: InvalidInput for one that is not valid, or to which no key is sent."""
    try:
        parts = urlsplit(target.url)
        httpx.URL(target.url)
    except (ValueError, httpx.InvalidURL) as error:
        raise InvalidInput(f"the address is not valid: {error}", code=ForeignCode("usage")) from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query or parts.fragment:
        raise InvalidInput("the address must be http(s)://HOST, without credentials", code=ForeignCode("usage"))
    if target.key is not None:
        if parts.scheme == "http" and parts.hostname not in LOOPBACK:
            raise InvalidInput("a key is only sent by https, or to this machine", code=ForeignCode("usage"))
        if not fits_header(target.key):
            raise InvalidInput("the key has characters that no key has", code=ForeignCode("usage"))
    return target.url
