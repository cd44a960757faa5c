"""The errors that failures of the platform become."""

from __future__ import annotations

import logging

from pyodide.ffi import JsException

from retain import errors
from retain.errors.codes import UnavailableCode
from retain.limits.storage import statement_error

_log = logging.getLogger("retain.bindings")


def unavailable(what: str, error: JsException, code: UnavailableCode) -> errors.Unavailable:
    """Return the port's error for a failure of the platform. The platform's own text stays in the log."""
    _log.warning("%s failed", what, extra={"cause": str(error)})
    return errors.Unavailable(f"{what} failed; try again", code=code)


def sql_error(what: str, error: JsException, code: UnavailableCode) -> errors.RetainError:
    """Return the port's error for a statement that the platform refused. Its own text stays in the log."""
    meaning = statement_error(what, str(error), code)
    if isinstance(meaning, errors.Unavailable):
        _log.warning("%s failed", what, extra={"cause": str(error), "code": meaning.code})
    return meaning
