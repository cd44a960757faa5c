"""Choose the extractor by configuration."""

from __future__ import annotations

from collections.abc import Callable

from retain.errors import Misconfigured
from retain.ingest.extraction import Extractor
from retain.models.chat import ChatModel


def extractor(name: str, model: Callable[[], ChatModel]) -> Extractor:
    """Return the extractor that the variable EXTRACTOR names. model: makes the chat model; called only for `llm`.

    Raises: Misconfigured (code `unknown_extractor`, or as `model`).
    """
    match name:
        case "rules":
            from retain.ingest.extractors.rule_extractor import RuleExtractor

            return RuleExtractor()
        case "llm":
            from retain.ingest.extractors.llm_extractor import LlmExtractor

            return LlmExtractor(model())
        case other:
            raise Misconfigured(f"there is no extractor named '{other}'", code="unknown_extractor")
