"""Who an instance is: read from a request, and written into the object once."""

from __future__ import annotations

from dataclasses import dataclass

from retain.errors import InvalidInput, Misconfigured, NotFound
from retain.identifiers import check_agent_type, check_instance_id, namespace_key
from retain.json_text import Json, JsonObject
from retain.memory.scope import Scope
from retain.ports import ObjectSql


@dataclass(frozen=True, slots=True)
class InstanceIdentity:
    """Who an instance is. Raises InvalidInput through `Scope`."""

    scope: Scope
    instance_id: str

    @property
    def agent_type(self) -> str:
        """The instance's agent."""
        if self.scope.agent_type is None:
            raise InvalidInput("an instance belongs to an agent", code="invalid_request")
        return self.scope.agent_type

    @property
    def key(self) -> str:
        """The instance's namespace key."""
        return namespace_key(self.scope.agent_type or "", self.scope.tenant_id, self.instance_id)

    def to_json(self) -> dict[str, Json]:
        """Return the fields that name the instance in a call to it."""
        return {"tenant_id": self.scope.tenant_id, "agent_type": self.agent_type, "instance_id": self.instance_id}


def instance_of(tenant_id: str, agent_type: str, instance_id: str) -> InstanceIdentity:
    """Return the identity with these names. Raises: InvalidInput."""
    return InstanceIdentity(Scope(tenant_id, check_agent_type(agent_type)), check_instance_id(instance_id))


def identity_of(request: JsonObject) -> InstanceIdentity:
    """Return the identity of the instance that a request is for. Raises: InvalidInput."""
    return instance_of(*(_name(request, field) for field in ("tenant_id", "agent_type", "instance_id")))


def _name(request: JsonObject, field: str) -> str:
    """Return a name, or "" for a value of another type, which is then refused as an invalid name."""
    if field not in request:
        raise InvalidInput(f"the request has no {field}", code="invalid_request")
    name = request[field]
    return name if isinstance(name, str) else ""


def claim(local: ObjectSql, identity: InstanceIdentity) -> None:
    """Write the identity into the object, once. Raises: Misconfigured when the object is another instance."""
    local.run("CREATE TABLE IF NOT EXISTS identity (tenant_id TEXT, agent_type TEXT, instance_id TEXT)")
    known = _written(local)
    if known is None:
        scope = identity.scope
        local.run("INSERT INTO identity VALUES (?, ?, ?)", scope.tenant_id, scope.agent_type, identity.instance_id)
    elif known != identity:
        raise Misconfigured("the object belongs to another instance", code="wrong_instance")


def require_claimed(local: ObjectSql) -> InstanceIdentity:
    """Return who the object is; write nothing. Raises: NotFound (code `no_such_instance`) when it was never called."""
    known = claimed(local)
    if known is None:
        raise NotFound("there is no such instance", code="no_such_instance")
    return known


def claimed(local: ObjectSql) -> InstanceIdentity | None:
    """Return who the object is, or None when it was never called."""
    if not local.run("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'identity'").rows:
        return None
    return _written(local)


def _written(local: ObjectSql) -> InstanceIdentity | None:
    """Return who the object is by its table, which it has."""
    rows = local.run("SELECT * FROM identity").rows
    return identity_of(rows[0]) if rows else None
