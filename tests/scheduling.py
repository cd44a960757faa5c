"""Which process runs which tests: every server is started by one of them, and any idle process runs the rest.

xdist's own groups are not used: with pytest 9.2 the name of a group no longer reaches the scheduler (xdist 3.8.0).
"""

from __future__ import annotations

import re
from functools import cache

from xdist.scheduler import LoadScopeScheduling

from tools.paths import ROOT


class ServersTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Give the tests of the session's server to one process, and those that start their own to another."""

    def _split_scope(self, nodeid: str) -> str:
        return servers_of(nodeid.partition("::")[0]) or nodeid


@cache
def servers_of(file: str) -> str | None:
    """Return the name of the group whose servers a file's tests need, None for tests without a server."""
    text = (ROOT / file).read_text()
    if "pytest.mark.workerd" not in text:
        return None
    return "the session's server" if re.search(r"\bapi: httpx\.Client\b", text) else "servers of their own"
