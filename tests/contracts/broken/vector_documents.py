"""Documents that do not keep contents and metadata as they were given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any
from unicodedata import normalize

from retain.contracts.vectors import RetrievedDocument, VectorDocument
from tests.contracts.broken.chat_messages import each_name, each_value
from tests.contracts.broken.kinds import Broken, Table, replacing
from tests.contracts.broken.sound import SoundVectors
from tests.contracts.broken.vector_searches import VM8

VM6 = "test_vm6_metadata_are_opaque"
Change = Callable[[Any], Any]


def _kept(change: Callable[[VectorDocument], VectorDocument], *, before: bool) -> Callable[..., VectorDocument]:
    if before:
        return lambda memory, document: SoundVectors.kept(memory, change(document))
    return lambda memory, document: change(SoundVectors.kept(memory, document))


def contents(what: str, change: Callable[[str], str]) -> Broken:
    """Return documents with changed contents."""
    kept = _kept(lambda each: replace(each, content=change(each.content)), before=False)
    return replacing(what, VM8, SoundVectors, kept=kept)


def metadata(what: str, change: Change, *, caught_by: str = VM6, before: bool = False) -> Broken:
    """Return documents with changed metadata. before: before they are checked."""
    kept = _kept(lambda each: replace(each, metadata=change(each.metadata)), before=before)
    return replacing(what, caught_by, SoundVectors, kept=kept)


def taking(what: str, change: Change) -> Broken:
    """Return documents that store what is not JSON, changed."""
    return metadata(what, change, caught_by=VM8, before=True)


def _without(unwanted: Callable[[Any], bool]) -> Change:
    return lambda given: {name: value for name, value in given.items() if not unwanted(value)}


def _without_operators(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if not name.startswith("$")}


def _json_or_text(value: Any) -> Any:
    return (
        value
        if isinstance(value, str | int | None) or (isinstance(value, float) and not math.isnan(value))
        else repr(value)
    )


def _null_for_nan(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(change: Callable[[float], Any]) -> Change:
    return each_value(lambda value: change(value) if isinstance(value, int | float) else value)


def _text(change: Callable[[str], Any]) -> Change:
    return each_value(lambda value: change(value) if isinstance(value, str) else value)


BROKEN = Table(
    [
        contents("Contents are put into Unicode's composed form.", lambda text: normalize("NFC", text)),
        contents("Contents lose outer spaces.", str.strip),
        contents("Ends of lines are rewritten.", lambda text: text.replace("\r\n", "\n")),
        contents("Contents are cut at NUL.", lambda text: text.split("\0")[0]),
        contents("Contents are cut at 8,000 characters.", lambda text: text[:8000]),
        metadata("Metadata that are None are dropped.", _without(lambda value: value is None)),
        metadata("Metadata that are empty, zero or False are dropped.", _without(lambda value: not value)),
        metadata("Names of metadata have no case.", each_name(str.lower)),
        metadata("Names of metadata lose their dots.", each_name(lambda name: name.replace(".", "_"))),
        metadata("Names that begin with a dollar sign are dropped.", _without_operators),
        metadata("Names of metadata are put into Unicode's composed form.", each_name(lambda name: normalize("NFC", name))),
        metadata("All values become text.", each_value(str)),
        metadata("Integers become floats.", _number(float)),
        metadata("Truth values become numbers.", _number(lambda value: value + 0)),
        metadata("Large integers are rounded.", _number(lambda value: int(float(value)) if value > 2**53 else value)),
        metadata("Text that looks like a number becomes one.", _text(lambda text: int(text) if text.isdigit() else text)),
        metadata("Text loses outer spaces.", _text(str.strip)),
        metadata("Nested objects are dropped.", _without(lambda value: isinstance(value, dict))),
        metadata("The store adds a field of its own.", lambda given: {**given, "stored": True}),
        taking("What is not JSON is stored as its text.", each_value(_json_or_text)),
        taking("NaN is stored as null.", each_value(_null_for_nan)),
        taking("A tuple is stored as a list.", each_value(lambda one: list(one) if isinstance(one, tuple) else one)),
        taking("Bytes are stored as text.", each_value(lambda one: one.decode() if isinstance(one, bytes) else one)),
        taking("Keys that are not text are stored as text.", each_name(str)),
        taking("What is not Unicode is replaced.", _text(lambda text: text.encode("utf-8", "replace").decode())),
    ]
)  # fmt: skip


@BROKEN.holds("Metadata that name another tenant hide a document.", VM6)
class Filters(SoundVectors):
    def ranked(self, found: Any, top_k: int) -> list[RetrievedDocument]:
        return super().ranked([one for one in found if "tenant_id" not in one.metadata], top_k)


@BROKEN.holds("A score in the metadata counts as the document's.", VM6)
class ScoreOfMetadata(SoundVectors):
    def found(self, document: VectorDocument, score: float) -> RetrievedDocument:
        own: Any = document.metadata.get("score", score)
        return super().found(document, own)


@BROKEN.holds("A content in the metadata counts as the document's.", VM6)
class ContentOfMetadata(SoundVectors):
    def found(self, document: VectorDocument, score: float) -> RetrievedDocument:
        own: Any = document.metadata.get("content", document.content)
        return replace(super().found(document, score), content=own)


@BROKEN.holds("A store with metadata that are not JSON has stored the documents before it.", VM8)
class StoresUntilBytes(SoundVectors):
    async def store(self, documents: Sequence[VectorDocument]) -> None:
        for each in documents:
            if isinstance(each.metadata.get("value"), bytes):
                break
            self.put([self.kept(each)])
        await super().store(documents)
