"""An agent for tests: it keeps a note, calls a tool that may be called again, then one that must not."""

from __future__ import annotations

from typing import Any

from retain.agents.catalogue import AgentCatalogue
from tests.support.instances import Deployment, Upstream, catalogue

SHIPPING: dict[str, Any] = {
    "type": "shipping",
    "description": "Ships orders.",
    "instructions": "Ship the order.",
    "model": {"script": "shipping"},
    "tools": ["track_parcel", "create_label"],
    "working_memory": True,
}
SCRIPT: dict[str, Any] = {
    "name": "shipping",
    "rules": [
        {
            "rule": "note the order, look where the parcel is, then make a label",
            "when": {"last": "user", "find": {"user": r"(?P<order>[A-Z]{2}-\d+)"}},
            "reply": {
                "text": "On its way.",
                "calls": [
                    {"tool": "set_working_memory", "arguments": {"key": "order", "value": "{order}"}},
                    {"tool": "track_parcel", "arguments": {"order": "{order}"}},
                    {"tool": "create_label", "arguments": {"order": "{order}"}},
                ],
            },
        },
        {
            "rule": "it is not known whether there is a label",
            "when": {"tool": "create_label", "find": {"result": "outcome_unknown"}},
            "reply": {"text": "It is not known whether the label was made."},
        },
        {
            "rule": "the label failed",
            "when": {"tool": "create_label", "find": {"result": '"error"'}},
            "reply": {"text": "The label was not made."},
        },
        {"rule": "done", "when": {"tool": "create_label"}, "reply": {"text": "The label was made."}},
        {"rule": "nothing to ship", "when": {"last": "user"}, "reply": {"text": "Which order?"}},
    ],
}


def shipping_agents() -> AgentCatalogue:
    """Return the shipped agents and `shipping`."""
    return catalogue(SHIPPING, scripts=[SCRIPT])


def shipping_deployment() -> Deployment:
    """Return a deployment with the agent and its tools: `track_parcel` is idempotent, `create_label` is not."""
    upstreams = [Upstream("track_parcel", idempotent=True), Upstream("create_label", idempotent=False)]
    return Deployment(shipping_agents(), upstreams=upstreams)
