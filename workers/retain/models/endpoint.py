"""A model's server over HTTP: JSON in, JSON or a stream of events out, with its failures classed."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field

from retain.errors import (
    Detail,
    InvalidInput,
    Misconfigured,
    RetainError,
    Unavailable,
    UnusableAnswer,
    UpstreamFailed,
)
from retain.errors.codes import UnavailableCode
from retain.json_text import read_json
from retain.models.embedded import EmbeddedContents
from retain.models.provider_message import message_of
from retain.models.requests import check_model_request
from retain.models.retry import Retries, retry_after_ms, with_retries
from retain.ports import Fetch, FetchStream, HttpResponse, StreamedResponse

WireObject = Mapping[str, object]
"""A JSON object as a provider sends or takes it. Its values are checked where they are read."""

EVENT_STREAM = "text/event-stream"
MAX_ANSWER_BYTES = 8 * 1024 * 1024
"""Most bytes of an answer that is not streamed: above what a hundred texts' vectors take as JSON."""
MAX_ERROR_BYTES = 65_536
"""Most bytes of an error's body that are read."""

_SAFE_CODE = re.compile(r"[A-Za-z0-9_.\-\[\]]{1,80}")
_UNAUTHORIZED = 401
_NOT_FOUND = 404
_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429
_PAYMENT_REQUIRED = 402

STATUS_OF_ERROR = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "billing_error": 402,
    "insufficient_quota": 429,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}
"""The status that stands for an error within a stream, after the status 200. Any other error is the server's fault.

Source: https://docs.claude.com/en/api/errors
Source: https://platform.openai.com/docs/guides/error-codes
Source: https://github.com/ggml-org/llama.cpp/pull/15780
"""


@dataclass(frozen=True)
class Endpoint:
    """Where the server is and how to reach it.

    base_url: with the version and without a trailing slash, as in `https://api.openai.com/v1`.
    api_key: "" sends none, for servers that need none.
    timeout_ms: limit of one attempt. For a stream it limits each silence, and `stream_timeout_ms` the whole.
    fetch_stream: None for an endpoint without streaming.
    key_name: of the secret that has the key, which the error for refused credentials names; "" if there is none.
    """

    base_url: str
    fetch: Fetch
    retries: Retries
    api_key: str = field(default="", repr=False)
    timeout_ms: int = 60_000
    fetch_stream: FetchStream | None = None
    stream_timeout_ms: int = 600_000
    key_name: str = ""

    def credentials(self) -> dict[str, str]:
        """Return the headers with the key, and whatever else each request to this kind of server needs."""
        raise NotImplementedError

    async def post(self, path: str, payload: WireObject, contents: EmbeddedContents | None = None) -> WireObject:
        """Post JSON and return the JSON object of the answer, retrying where that may help.

        contents: those for which marks in the payload stand.
        Raises: Misconfigured (code `model_credentials` for 401 and 403; `model_endpoint` when address or key is
            not valid for HTTP; `model_requests_forbidden`); Unavailable (codes `model_rate_limited`,
            `model_unavailable`, `upstream_unreachable`, `upstream_timeout`) when attempts are used up; UpstreamFailed
            (codes `model_quota`, `model_refused`, `response_too_large`) for what retrying will not fix;
            UnusableAnswer (code `malformed_answer`). Errors carry `status`, the server's own error code as
            `upstream_code`, and its message without secrets as `upstream_message`.
        """
        url = self._url(path)

        async def attempt() -> WireObject:
            try:
                response = await self.fetch(
                    "POST",
                    url,
                    headers=self._headers("application/json"),
                    body=_body(payload, contents),
                    timeout_ms=self.timeout_ms,
                    limit_bytes=MAX_ANSWER_BYTES,
                )
            except InvalidInput as error:  # address and key are the deployment's, not the caller's
                raise _cannot_be_addressed() from error
            except Unavailable as error:
                response = _begun(error)
            with self._naming_the_key():
                return read_answer(response, self.api_key)

        return await with_retries(attempt, self.retries)

    @asynccontextmanager
    async def open(
        self, path: str, payload: WireObject, contents: EmbeddedContents | None = None
    ) -> AsyncIterator[StreamedResponse]:
        """Post JSON and enter when a successful answer begins. One attempt: text that was passed on cannot be recalled.

        Raises: as `post`, without retries.
        """
        if self.fetch_stream is None:
            raise Misconfigured("this model's server was set up without streaming", code="model_endpoint")
        opened = self.fetch_stream(
            "POST",
            self._url(path),
            headers=self._headers(EVENT_STREAM),
            body=_body(payload, contents),
            silence_ms=self.timeout_ms,
            timeout_ms=self.stream_timeout_ms,
        )
        try:
            response = await opened.__aenter__()
        except InvalidInput as error:
            raise _cannot_be_addressed() from error
        try:
            with self._naming_the_key():
                if not 200 <= response.status < 300:
                    body = await _beginning(response.chunks)
                    raise failure(response.status, body, response.headers, self.api_key)
                yield response
        finally:
            await opened.__aexit__(None, None, None)

    @contextmanager
    def _naming_the_key(self) -> Iterator[None]:
        """Say of refused credentials which secret has them, and whether it is set."""
        try:
            yield
        except Misconfigured as error:
            if error.code != "model_credentials" or not self.key_name:
                raise
            wrong = f"correct the secret {self.key_name}" if self.api_key else f"the secret {self.key_name} is not set"
            raise Misconfigured(f"{error.message}: {wrong}", code="model_credentials", **error.details) from error

    def _url(self, path: str) -> str:
        check_model_request(self.base_url)
        return f"{self.base_url.rstrip('/')}{path}"

    def _headers(self, accept: str) -> dict[str, str]:
        return {"content-type": "application/json", "accept": accept, **self.credentials()}


def _body(payload: WireObject, contents: EmbeddedContents | None) -> str | bytes:
    return (contents or EmbeddedContents()).body(payload)


def _cannot_be_addressed() -> Misconfigured:
    return Misconfigured("the model's server cannot be addressed", code="model_endpoint")


def _begun(error: Unavailable) -> HttpResponse:
    """Return an answer that broke off, if it was a refusal: its status tells enough. Raises: the error of any other."""
    status = error.details.get("upstream_status")
    if not isinstance(status, int) or 200 <= status < 300:
        raise error
    return HttpResponse(status, {}, b"")


async def _beginning(pieces: AsyncIterator[bytes]) -> bytes:
    """Return the start of an error's body: if it breaks off, what had arrived."""
    body = b""
    try:
        async for piece in pieces:
            body += piece
            if len(body) > MAX_ERROR_BYTES:
                break
    except Unavailable:
        return body
    return body


def read_answer(response: HttpResponse, secret: str = "") -> WireObject:
    """Return the JSON object that a successful response holds. secret: the key, which no error may contain.

    Raises: as `Endpoint.post`, except what `Fetch` raises.
    """
    if not 200 <= response.status < 300:
        raise failure(response.status, response.body, response.headers, secret)
    return read_whole(response.body.decode(errors="replace"), secret)


def read_whole(text: str, secret: str = "") -> WireObject:
    """Return the JSON object of an answer whose status is that of a success. secret: the key that was sent.

    A server that passes requests on may have begun its answer before it learned of a failure.
    Source: https://openrouter.ai/docs/api/reference/errors-and-debugging

    Raises: as `read_object`, and as `failure_within` for an object that reports a failure.
    """
    answer = read_object(text)
    if is_failure(answer):
        raise failure_within(answer, secret)
    return answer


def is_failure(answer: WireObject) -> bool:
    """Return whether an object reports a failure: in `error`, or by being an error itself, as of vLLM and Mistral."""
    return bool(answer.get("error")) or answer.get("object") == "error"


def read_object(text: str) -> WireObject:
    """Return the JSON object of a text. Raises: UnusableAnswer (code `malformed_answer`)."""
    answer = _json(text)
    if not isinstance(answer, dict):
        raise UnusableAnswer("the model's server did not answer with a JSON object", code="malformed_answer")
    return answer


def _json(text: str) -> object:
    try:
        return read_json(text)
    except ValueError:
        return None


def failure(status: int, body: bytes, headers: Mapping[str, str], secret: str = "") -> RetainError:
    """Return the error for an answer of this status. secret: the key, which the error may not contain."""
    answer = _json(body.decode(errors="replace"))
    if isinstance(answer, list) and answer:  # as Gemini's endpoint writes it
        answer = answer[0]
    return _classed(status, _codes(answer), headers, message_of(answer, secret))


def failure_within(event: WireObject, secret: str = "") -> RetainError:
    """Return the error for an event that reports that the answer failed. secret: as in `failure`."""
    codes = _codes(event)
    numbers = [int(code) for code in codes if code.isdecimal() and 400 <= int(code) < 600]
    status = next((STATUS_OF_ERROR[code] for code in codes if code in STATUS_OF_ERROR), (numbers or [500])[0])
    return _classed(status, codes, {}, message_of(event, secret))


def _classed(status: int, codes: list[str], headers: Mapping[str, str], message: str | None) -> RetainError:
    details: dict[str, Detail] = {"status": status}
    if codes:
        details["upstream_code"] = codes[0]
    if message is not None and status != _UNAUTHORIZED:  # this one is about the key
        details["upstream_message"] = message
    if "content_filter" in codes:
        return UpstreamFailed("the model's server withheld the answer", code="content_filtered", **details)
    if status in (_UNAUTHORIZED, 403):
        return Misconfigured("the model's server refused the credentials", code="model_credentials", **details)
    if status == _PAYMENT_REQUIRED or (status == _TOO_MANY_REQUESTS and "insufficient_quota" in codes):
        return UpstreamFailed("the account with the model's server has no credit left", code="model_quota", **details)
    if status in (_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS) or status >= 500:
        wait = retry_after_ms(headers)
        if wait is not None:
            details["retry_after_ms"] = wait
        limited = status == _TOO_MANY_REQUESTS
        code: UnavailableCode = "model_rate_limited" if limited else "model_unavailable"
        return Unavailable("the model's server cannot answer now", code=code, **details)
    refused = "has no such model, or not at this address" if status == _NOT_FOUND else "refused the request"
    return UpstreamFailed(f"the model's server {refused}", code="model_refused", **details)


def _codes(answer: object) -> list[str]:
    """Return the error codes of an answer, most specific first.

    Most servers answer {"error": {"code", "type"}}; Cloudflare's API and AI Gateway list {"code"} as `errors` or
    `error`; others answer {"code", "type"}.
    """
    error = (answer.get("error") or answer.get("errors") or answer) if isinstance(answer, dict) else None
    if isinstance(error, list):
        error = error[0] if error else None
    if not isinstance(error, dict):
        return []
    values = [error.get(name) for name in ("code", "type")]
    written = [str(value) if isinstance(value, int) else value for value in values]
    return [value for value in written if isinstance(value, str) and _SAFE_CODE.fullmatch(value)]
