"""A server that speaks OpenAI's wire format: one call, with its failures classed."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from retain.errors import Detail, InvalidInput, Misconfigured, RetainError, Unavailable, UpstreamFailed
from retain.json_text import read_json
from retain.models.retry import Retries, retry_after_ms, with_retries
from retain.ports import Fetch, HttpResponse

JsonObject = Mapping[str, object]

_SAFE_CODE = re.compile(r"[A-Za-z0-9_.\-\[\]]{1,80}")
_REQUEST_TIMEOUT = 408
_TOO_MANY_REQUESTS = 429


@dataclass(frozen=True)
class OpenAiEndpoint:
    """Where the server is and how to reach it.

    base_url: with the version and without a slash at its end, as in `https://api.openai.com/v1`.
    api_key: sent as bearer token; "" sends none, for servers that need none.
    timeout_ms: limit of one attempt.
    """

    base_url: str
    fetch: Fetch
    retries: Retries
    api_key: str = field(default="", repr=False)
    timeout_ms: int = 60_000

    async def post(self, path: str, payload: JsonObject) -> JsonObject:
        """Post JSON and return the JSON object of the answer, after retries where they may help.

        Raises: Misconfigured (code `model_credentials` for 401 and 403; `model_endpoint` when address or key cannot be
            sent at all); Unavailable (codes `model_rate_limited`, `model_unavailable`, `upstream_unreachable`,
            `upstream_timeout`) when attempts are used up; UpstreamFailed (codes `model_quota`, `model_refused`,
            `malformed_answer`) for what retrying will not mend. Errors carry `status` and the server's own error code,
            never its words: those may quote the key or the prompt.
        """
        body = json.dumps(payload, separators=(",", ":"), allow_nan=False)
        headers = {"content-type": "application/json", "accept": "application/json"}
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        url = f"{self.base_url.rstrip('/')}{path}"

        async def attempt() -> JsonObject:
            try:
                response = await self.fetch("POST", url, headers=headers, body=body, timeout_ms=self.timeout_ms)
            except InvalidInput as error:  # address and key come from the deployment, not from the caller
                raise Misconfigured("the model's server cannot be addressed", code="model_endpoint") from error
            return read_answer(response)

        return await with_retries(attempt, self.retries)


def read_answer(response: HttpResponse) -> JsonObject:
    """Return the JSON object that a successful response holds.

    Raises: as `OpenAiEndpoint.post`, but for what `Fetch` raises.
    """
    if not 200 <= response.status < 300:
        raise _failure(response)
    answer = _json(response.body)
    if not isinstance(answer, dict):
        raise UpstreamFailed("the model's server did not answer with a JSON object", code="malformed_answer")
    return answer


def _json(body: bytes) -> object:
    try:
        return read_json(body.decode())
    except ValueError:
        return None


def _failure(response: HttpResponse) -> RetainError:
    status = response.status
    details: dict[str, Detail] = {"status": status}
    upstream_code = _upstream_code(response.body)
    if upstream_code is not None:
        details["upstream_code"] = upstream_code
    if status in (401, 403):
        return Misconfigured("the model's server refused the credentials", code="model_credentials", **details)
    if status == _TOO_MANY_REQUESTS and upstream_code == "insufficient_quota":
        return UpstreamFailed("the account with the model's server has no credit left", code="model_quota", **details)
    if status in (_REQUEST_TIMEOUT, _TOO_MANY_REQUESTS) or status >= 500:
        wait = retry_after_ms(response.headers)
        if wait is not None:
            details["retry_after_ms"] = wait
        code = "model_rate_limited" if status == _TOO_MANY_REQUESTS else "model_unavailable"
        return Unavailable("the model's server cannot answer now", code=code, **details)
    return UpstreamFailed("the model's server refused the request", code="model_refused", **details)


def _upstream_code(body: bytes) -> str | None:
    answer = _json(body)
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict):
        return None
    for name in ("code", "type"):
        value = error.get(name)
        if isinstance(value, str) and _SAFE_CODE.fullmatch(value):
            return value
    return None
