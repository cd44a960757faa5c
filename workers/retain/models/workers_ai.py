"""Workers AI: the port that runs its models, and what its failures mean. For chat, embeddings and reranking."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol

from retain.errors import Detail, Misconfigured, RetainError, Unavailable, UpstreamFailed


class AiRunner(Protocol):
    """Runs a model of Workers AI: the binding's `run`."""

    async def __call__(self, model: str, inputs: Mapping[str, object]) -> Mapping[str, object]:
        """Return the model's answer, as plain Python values.

        Raises: Unavailable when retrying may help (out of capacity, timeout); UpstreamFailed when it will not.
        """
        ...


_CODE = re.compile(r"\b([35]0\d\d): ")
_PASSING = {"3007", "3008", "3040"}  # timeout, aborted, out of capacity
_NOT_ALLOWED = {"3023", "3041", "5016", "5018"}  # the account is blocked, or may not use the model
_USED_UP = "3036"


def platform_failure(text: str) -> RetainError:
    """Return the error for what the binding raised. text: such as `InferenceUpstreamError: 3040: out of capacity`.

    A text without a code counts as temporary. Source: https://developers.cloudflare.com/workers-ai/platform/errors/
    """
    found = _CODE.search(text)
    if found is None or found[1] in _PASSING:
        return Unavailable("Workers AI failed; try again", code="workers_ai_unavailable")
    details: dict[str, Detail] = {"upstream_code": found[1]}
    if found[1] in _NOT_ALLOWED:
        return Misconfigured("the account may not use this model of Workers AI", code="model_credentials", **details)
    if found[1] == _USED_UP:
        return UpstreamFailed("the account has used up its allocation of Workers AI", code="model_quota", **details)
    return UpstreamFailed("Workers AI refused the request", code="model_refused", **details)
