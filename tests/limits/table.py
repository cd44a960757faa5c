"""Every limit that is tried one below, at and one above."""

from __future__ import annotations

from tests.limits import cuts, platform, requests, texts, writes
from tests.limits.limit import Limit, ServedLimit

PURE: tuple[Limit, ...] = (*platform.LIMITS, *texts.LIMITS, *cuts.LIMITS)
SERVED: tuple[ServedLimit, ...] = (*requests.LIMITS, *writes.LIMITS)
