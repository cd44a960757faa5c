"""The codes with which a route refuses a request, and the status of each code."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, get_args

from tools.paths import ROOT

sys.path.insert(0, str(ROOT / "workers"))

from retain import errors
from retain.errors import codes
from retain.errors.misconfigured_codes import MisconfiguredCode
from retain.http import problem
from retain.routing.application_paths import applications_path
from retain.routing.route import ErrorGroup, Route

PROBLEM = "application/problem+json"

_CLASSES: Sequence[tuple[type[errors.RetainError], Any]] = (
    (errors.RetainError, Literal["internal"]),
    (errors.NotFound, Literal["no_such_tool", "unknown_scope"]),
    (errors.Conflict, Literal["constraint"]),
    (errors.UpstreamFailed, Literal["schema_mismatch"]),
    (errors.InvalidInput, codes.InvalidInputCode),
    (errors.MethodNotAllowed, codes.MethodNotAllowedCode),
    (errors.LimitExceeded, codes.LimitExceededCode),
    (errors.Unauthenticated, codes.UnauthenticatedCode),
    (errors.Forbidden, codes.ForbiddenCode),
    (errors.NotFound, codes.NotFoundCode),
    (errors.Conflict, codes.ConflictCode),
    (errors.QuotaExceeded, codes.QuotaExceededCode),
    (errors.RateLimited, codes.RateLimitedCode),
    (errors.Unavailable, codes.UnavailableCode),
    (errors.UpstreamFailed, codes.UpstreamFailedCode),
    (errors.Misconfigured, MisconfiguredCode),
)
_BODIES: Mapping[type[errors.RetainError], Mapping[str, Any]] = {
    kind: json.loads(problem(kind(""), "").body) for kind, _ in _CLASSES
}
_OF_CODES: Sequence[tuple[str, int]] = [
    (code, _BODIES[kind]["status"]) for kind, literal in _CLASSES for code in get_args(literal)
]
STATUSES: Mapping[str, Sequence[int]] = {
    code: sorted({status for one, status in _OF_CODES if one == code}) for code, _ in _OF_CODES
}
"""The HTTP statuses of each code: several for one that is raised with several classes."""
TITLES: Mapping[int, str] = {body["status"]: body["title"] for body in _BODIES.values()}
"""What problems of a status are called."""

OF_ACCESS = (
    *("missing_access_token", "invalid_access_token", "cross_site_request", "forwarded_request", "role_required"),
    *("access_not_configured", "access_keys_unavailable", "rate_limited"),
)
"""Codes of the routes behind Access."""
OF_APPLICATIONS = ("invalid_api_key", "origin_not_allowed", "scope_required", "invalid_user_token", "token_not_allowed")
"""Codes of the routes that applications reach, too."""
OF_STORES = (
    *("d1_unavailable", "kv_unavailable", "r2_unavailable", "vector_index_unavailable", "workers_ai_unavailable"),
    *("agent_instance_unavailable", "writer_unavailable", "object_storage_unavailable", "database_full"),
    *("database_failed", "contended", "unavailable", "no_memory_left", "d1_calls_used_up"),
    *("schema_outdated", "schema_unknown", "tenant_moving", "value_too_large"),
)
"""Codes of the routes that use a store."""


def codes_of(route: Route[Any]) -> list[str]:
    """Return every code with which the route refuses a request, sorted."""
    return sorted({*_own_codes(route), *_shared_codes(route)})


def _own_codes(route: Route[Any]) -> Iterator[str]:
    for error in route.errors:
        yield from error.codes if isinstance(error, ErrorGroup) else (error,)


def _shared_codes(route: Route[Any]) -> Iterator[str]:
    """Yield the codes that follow from what the route reads, and who may ask."""
    yield from ("internal", "invalid_setting", "invalid_query")
    if route.guard != "anyone":
        yield "no_memory_left"
    if route.guard == "Access":
        yield from (*OF_ACCESS, *OF_APPLICATIONS, *OF_STORES)
    for parameter in route.parameters.values():
        try:
            parameter.check("\x00")
        except errors.InvalidInput as error:
            yield error.code
    if "run_id" in route.parameters and applications_path(route.path) != route.path:
        yield "no_such_route"  # below `/v1/agents/`, what does not have the length of a run's id may be another route
    if route.requires_tenant:
        yield "unknown_tenant"
    if route.method not in ("GET", "HEAD"):
        yield from ("body_too_large", "body_interrupted")
    if route.body is not None:
        yield from ("malformed_json", "invalid_body")
    if "idempotency-key" in route.headers:
        yield "invalid_idempotency_key"
