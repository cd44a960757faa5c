"""Which process runs which tests: every server is started by one of them, what a module shares is made by one of them,
and any idle process runs the rest.

xdist's own groups are not used: with pytest 9.2 the name of a group no longer reaches the scheduler (xdist 3.8.0).
"""

from __future__ import annotations

import re
from functools import cache

from xdist.scheduler import LoadScopeScheduling

from tools.paths import ROOT


class ServersTogether(LoadScopeScheduling):  # type: ignore[misc]
    """Give the tests that share a server to one process: those of the session's servers, and those of each folder.

    The same for the tests of a module that has fixtures of its own for all of them.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return servers_of(file) or (file if shares_fixtures(file) else nodeid)


@cache
def shares_fixtures(file: str) -> bool:
    """Return whether a file has a fixture that is made once for its tests."""
    return 'scope="module"' in (ROOT / file).read_text()


@cache
def servers_of(file: str) -> str | None:
    """Return the name of the group whose servers a file's tests need, None for tests without a server."""
    text = (ROOT / file).read_text()
    if "pytest.mark.workerd" not in text:
        return None
    if re.search(r"\b(api: httpx\.Client|steered: Steered)\b", text):
        return "the session's servers"
    return f"servers of {file.split('/')[1]}"
