"""The responses with a run's report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from retain.agents.calls.report import RunReport
from retain.http import Response, json_response


def reported(report: RunReport) -> Response:
    """Return the response with a run's report; 202 for a run that has not ended."""
    return json_response(report.to_json(), 200 if report.ended else 202)


def pollable(report: RunReport, path: Mapping[str, str], instance_id: str) -> Response:
    """Return the response with the report of a run in the background, and with its address."""
    address = f"/v1/agents/{path['tenant']}/{path['agent_type']}/instances/{instance_id}/runs/{report.run_id}"
    answer = reported(report)
    return replace(answer, headers={**answer.headers, "location": address})
