"""The stubbed tools of a case: what the model reads of them, and the case's answers to their calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from retain.errors import NotFound
from retain.evaluation.dataset import Stub
from retain.evaluation.scoring.trace import fits_arguments
from retain.json_text import JsonObject, read_own_json
from retain.models.chat import ToolSpec
from retain.ports import Sql

_SCRATCH = re.compile(r"eval-[0-9a-hjkmnp-tv-z]{26}-[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class CaseStubs:
    """The stubs of one case, by the tool's name."""

    stubs: Mapping[str, Stub]

    def spec(self, name: str) -> ToolSpec:
        """Return what the model reads of a gateway tool; only its name if it has no stub."""
        stub = self.stubs.get(name)
        if stub is None:
            return ToolSpec(name, "", {"type": "object"})
        return ToolSpec(name, stub.description, stub.parameters)

    def answer(self, name: str, arguments: JsonObject) -> tuple[int, bytes]:
        """Return the first answer that fits the call, as an upstream's status and body.

        Raises: NotFound (code `no_stubbed_answer`), which the model reads, when the case has no answer to the call.
        """
        stub = self.stubs.get(name)
        for answer in stub.answers if stub is not None else ():
            if answer.when is None or fits_arguments(arguments, answer.when, subset=True):
                if answer.error is not None:
                    return 422, answer.error.encode()
                text = (
                    answer.answer if isinstance(answer.answer, str) else json.dumps(answer.answer, ensure_ascii=False)
                )
                return 200, text.encode("utf-8", "replace")
        raise NotFound("this evaluation has no answer for the call", code="no_stubbed_answer")


async def stubs_of(sql: Sql, tenant_id: str) -> CaseStubs | None:
    """Return the stubbed tools of a scratch tenant, None for any other tenant, without a query.

    A tenant whose name merely looks like a scratch tenant's has no row, and also gets None.
    """
    if _SCRATCH.fullmatch(tenant_id) is None:
        return None
    rows = (await sql.run("SELECT stubs FROM eval_scratches WHERE scratch_id = ?", tenant_id)).rows
    if not rows:
        return None
    return CaseStubs({name: Stub.model_validate(stub) for name, stub in read_own_json(rows[0]["stubs"]).items()})
