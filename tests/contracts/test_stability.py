"""The contracts are stable, as docs/contracts.md promises: what was published is still there, and means the same."""

from __future__ import annotations

import inspect
from dataclasses import fields
from typing import get_args

import pytest

from retain.contracts.chat import ChatMemory, ClearableChatMemory
from retain.contracts.vectors import DeletableVectorMemory, RetrievedDocument, VectorDocument, VectorMemory
from retain.errors import codes
from retain.models.chat import ChatMessage, ToolCall
from retain.models.embedding import Embedder
from retain.testing import ChatMemorySuite, EmbedderSuite, Suite, VectorMemorySuite
from tests.docs.markdown import page, spans

PROMISED: dict[tuple[type, str], str] = {
    (ChatMemory, "load"): "(self) -> 'list[ChatMessage]'",
    (ChatMemory, "save"): "(self, messages: 'Sequence[ChatMessage]') -> 'None'",
    (ClearableChatMemory, "clear"): "(self) -> 'None'",
    (VectorMemory, "store"): "(self, documents: 'Sequence[VectorDocument]') -> 'None'",
    (VectorMemory, "search"): "(self, embedding: 'Vector', *, top_k: 'int' = 10, threshold: 'float | None' = None)"
    " -> 'list[RetrievedDocument]'",
    (DeletableVectorMemory, "delete"): "(self, ids: 'Sequence[str]') -> 'None'",
    (Embedder, "embed"): "(self, texts: 'Sequence[str]') -> 'list[list[float]]'",
}
"""The methods as version 0.1.0 published them."""
FIELDS = {
    ChatMessage: ["role", "content", "tool_calls", "tool_call_id"],
    ToolCall: ["id", "name", "arguments"],
    VectorDocument: ["id", "content", "embedding", "metadata"],
    RetrievedDocument: ["id", "content", "score", "metadata"],
}
CODES = {
    "InvalidInput": {"invalid_chat_message", "invalid_document", "unsupported_value", "vector_dimensions"}
    | {"vector_not_finite", "vector_is_zero", "vector_top_k"},
    "LimitExceeded": {"chat_message_too_large", "chat_session_too_large", "vector_document_too_large"}
    | {"vector_top_k_too_large"},
    "Misconfigured": {"vector_dimensions_changed"},
}
OPENED = {ChatMemorySuite: ["session"], VectorMemorySuite: ["collection"], EmbedderSuite: []}
CONTRACTS: tuple[type, ...] = (ChatMemory, VectorMemory, Embedder)


@pytest.mark.parametrize(("protocol", "method"), PROMISED, ids=lambda each: getattr(each, "__name__", each))
def test_every_published_method_is_as_it_was(protocol: type, method: str) -> None:
    assert str(inspect.signature(getattr(protocol, method))) == PROMISED[protocol, method]


def test_no_method_was_added_that_a_backend_would_have_to_have() -> None:
    required = {
        (protocol, name)
        for protocol in (*CONTRACTS, ClearableChatMemory, DeletableVectorMemory)
        for name, member in vars(protocol).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }
    assert required == PROMISED.keys()
    assert [name for name, member in vars(Embedder).items() if isinstance(member, property)] == ["model", "dimensions"]


@pytest.mark.parametrize("kind", FIELDS, ids=lambda kind: kind.__name__)
def test_every_published_field_is_there_in_its_order_and_further_ones_are_optional(kind: type) -> None:
    names = [field.name for field in fields(kind)]
    published = FIELDS[kind]
    assert names[: len(published)] == published


def test_every_published_code_is_raised_with_its_class() -> None:
    for name, published in CODES.items():
        assert published <= set(get_args(getattr(codes, f"{name}Code")))


@pytest.mark.parametrize("suite", OPENED, ids=lambda suite: suite.__name__)
def test_a_suite_opens_a_backend_with_the_published_arguments(suite: type[Suite]) -> None:
    opened = getattr(suite, "open")  # noqa: B009 -- the base has none
    assert list(inspect.signature(opened).parameters) == ["self", *OPENED[suite]]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.__name__)
def test_the_tier_is_stated_in_the_page_and_in_the_code(contract: type) -> None:
    [row] = [row for row in page("docs/contracts.md").rows() if len(row) == 4 and spans(row[0]) == [contract.__name__]]
    assert row[2] == "stable"
    assert "Stability: stable." in (contract.__doc__ or "")
