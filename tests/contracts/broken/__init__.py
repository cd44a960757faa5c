"""Backends that are broken on purpose, each in one way, with the test of the published suites that catches it."""

from __future__ import annotations

from tests.contracts.broken.chat_messages import BROKEN as MESSAGES
from tests.contracts.broken.chat_saves import BROKEN as SAVES
from tests.contracts.broken.embedders import BROKEN as EMBEDDERS
from tests.contracts.broken.kinds import Broken
from tests.contracts.broken.vector_collections import BROKEN as COLLECTIONS
from tests.contracts.broken.vector_documents import BROKEN as DOCUMENTS
from tests.contracts.broken.vector_searches import BROKEN as SEARCHES
from tests.contracts.broken.vector_stores import BROKEN as STORES

BROKEN: tuple[Broken, ...] = (*SAVES, *MESSAGES, *COLLECTIONS, *STORES, *SEARCHES, *DOCUMENTS, *EMBEDDERS)

__all__ = ["BROKEN", "Broken"]
