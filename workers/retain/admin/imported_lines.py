"""What an import over HTTP may bring into a tenant, beyond what makes a line valid. Nothing has been written before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from retain.admin.context import AdminContext
from retain.admin.definitions.defining import DefinedAgents
from retain.errors import RetainError
from retain.evaluation.dataset import Case, Definition
from retain.evaluation.scoring.scores import Score
from retain.json_text import read_own_json
from retain.lifecycle.importing import Imported, import_read
from retain.lifecycle.transfer.items import ItemLine
from retain.lifecycle.transfer.kinds import ROW_KINDS
from retain.lifecycle.transfer.lines import bad_line, read_lines
from retain.lifecycle.transfer.rows import RowLine
from retain.routing.permission import require_role
from retain.routing.requests import TypedRequest

_Read = Callable[[str], object]
_AGENT = tuple(ROW_KINDS["agent"].columns)
_EVALUATIONS: Mapping[tuple[str, str], _Read] = {
    ("dataset", "definition"): Definition.model_validate_json,
    ("case", "content"): Case.model_validate_json,
    ("evaluation", "definition"): Definition.model_validate_json,
    ("result", "scores"): lambda text: [Score(**score) for score in read_own_json(text)],
}
"""What reads columns of evaluations. Raises: ValueError or TypeError for another shape."""


async def import_permitted(context: AdminContext, request: TypedRequest[str, Any], *, include_erased: bool) -> Imported:
    """Import the lines of a body, with the digests that versions of agents have.

    A value that is sealed for another tenant is opened with the deployment's key, as by a restore of that tenant's backup:
    who imports it must be its owner.
    Raises: Forbidden (code `role_required`); InvalidInput (code `invalid_line`), also for an agent that the tenant may not
        define; as `import_lines`.
    """
    tenant_id, agents = request.tenant_id, context.defined()
    lines = read_lines(request.body, tenant_id, context.clock())
    sealed = {line.sealed_tenant for line in lines if isinstance(line, ItemLine)}
    for other in sorted(one for one in sealed if one not in (None, tenant_id)):
        await require_role(request.http.authority, "owner", other)
    permitted = [_permitted(line, agents) if isinstance(line, RowLine) else line for line in lines]
    return await import_read(context.stores, tenant_id, permitted, items=context.items, include_erased=include_erased)


def _permitted(line: RowLine, agents: DefinedAgents) -> RowLine:
    if line.kind == "agent":
        return _version(line, agents)
    for name, cell in zip(ROW_KINDS[line.kind].columns, line.cells, strict=True):
        read = _EVALUATIONS.get((line.kind, name))
        if read is not None and cell is not None:
            try:
                read(str(cell))
            except (ValueError, TypeError) as error:
                raise bad_line(line.number, [f"{name} is not valid in a {line.kind}"]) from error
    return line


def _version(line: RowLine, agents: DefinedAgents) -> RowLine:
    row = dict(zip(_AGENT, line.cells, strict=True))
    text = row["definition"]
    try:
        digest = "" if text is None else agents.digest_of_imported(str(row["agent_type"]), str(text))
    except RetainError as error:
        problems = error.details.get("problems")
        raise bad_line(line.number, problems if isinstance(problems, list) else [error.message]) from error
    return replace(line, cells=tuple({**row, "digest": digest}.values()))
