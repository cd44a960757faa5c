"""The switch that forbids requests to real models, for tests: only loopback stays allowed.

    forbid_model_requests()          # in a conftest.py, for the whole process
    with model_requests_allowed():   # for the one test that needs one
        ...

A deployment has the variable ALLOW_MODEL_REQUESTS for the same purpose.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from retain.errors import Misconfigured

BINDING = "workers-ai:"
"""Stands for the binding of Workers AI, which has no address and is not on loopback."""

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_process = {"allowed": True}


def forbid_model_requests() -> None:
    """Make every later request of this process to a model that is not on loopback raise. Idempotent."""
    _process["allowed"] = False


@contextmanager
def model_requests_allowed() -> Iterator[None]:
    """Lift the ban while the block runs."""
    before = _process["allowed"]
    _process["allowed"] = True
    try:
        yield
    finally:
        _process["allowed"] = before


def check_model_request(address: str, *, allowed: bool = True) -> None:
    """Check that a request to a model is allowed. address: its URL, or BINDING. allowed: the deployment's setting.

    Raises: Misconfigured (code `model_requests_forbidden`).
    """
    if not (allowed and _process["allowed"]) and not _is_harmless(address):
        raise Misconfigured(
            "requests to real models are forbidden here; use the scripted model or a server on loopback",
            code="model_requests_forbidden",
        )


def _is_harmless(address: str) -> bool:
    try:
        host = urlsplit(address).hostname
    except ValueError:
        return False
    return host in _LOOPBACK or (host is None and address != BINDING)  # nothing can be sent without a host
