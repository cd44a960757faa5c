"""The collector that telemetry goes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Collector:
    """Where telemetry goes. endpoint: without a slash at the end. headers: may be secret. contents: whether texts go too."""

    endpoint: str
    headers: Mapping[str, str] = field(repr=False)
    contents: bool = False
