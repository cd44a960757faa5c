"""What a run's user said themselves, and the facts in it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from retain.agents.calls.run_request import RunRequest
from retain.agents.calls.user import User
from retain.agents.definitions import Learning
from retain.agents.recollection import FENCE
from retain.agents.runs.open_run import OpenRun
from retain.agents.tools.known import UNNAMED, names_of
from retain.identifiers import time_of
from retain.ingest.extraction import ExtractedFact, SourceMessage, entity, subject_of
from retain.ingest.extractors.selection import extractor
from retain.ingest.speech.sentences import announces
from retain.json_text import Json, read_own_json
from retain.memory.facts import user_subject
from retain.memory.recalled import without_recalled
from retain.models.chat import ChatModel, ChatReply, ChatRequest, OnText, Usage, spent

MAX_FACTS = 20
"""Facts that are learned from one run."""
MAX_BYTES = 8 * 1024
"""Text of a run that is read for facts, in bytes of UTF-8: its beginning."""


@dataclass(frozen=True, slots=True)
class FoundFacts:
    """What was extracted from a run.

    cut: how many facts were more than `MAX_FACTS`. usage: what the model read and wrote for it.
    """

    facts: tuple[ExtractedFact, ...]
    cut: int = 0
    usage: Usage = field(default_factory=Usage)

    def to_json(self) -> dict[str, Json]:
        """Return it as it is kept until it is stored."""
        return {
            "facts": [dict(fact.to_json()) for fact in self.facts],
            "cut": self.cut,
            **spent(self.usage),
        }

    @classmethod
    def from_text(cls, text: str) -> FoundFacts:
        """Return it from its `to_json` form, as JSON text."""
        content = read_own_json(text)
        facts = tuple(ExtractedFact(**fact) for fact in content["facts"])
        counts = (content["input_tokens"], content["output_tokens"], content.get("cached_input_tokens", 0))
        return cls(facts, content["cut"], Usage(*counts))


class _Metered:
    """Implements `ChatModel`: counts the tokens of another one."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.name = model.name
        self.usage = Usage()

    async def complete(self, request: ChatRequest, on_text: OnText | None = None) -> ChatReply:
        """Return the model's answer. Raises: as the model."""
        reply = await self._model.complete(request, on_text)
        self.usage += reply.usage
        return reply


def method_for(learning: Learning | None, request: RunRequest) -> Learning | None:
    """Return how is learned from a run, None for not at all.

    Nothing is learned from a run that has no user, from one that another run asked for, since its input is a model's, from
    one that a schedule begins, at which nobody speaks, and from an object, which an application wrote.
    """
    own_words = isinstance(request.input, str) and request.parent is None and request.schedule_id is None
    return learning if own_words and request.user is not None else None


async def extract(run: OpenRun, method: str, model: Callable[[], ChatModel]) -> FoundFacts:
    """Return the facts that the run's user states, without what came from recall. Raises: as the extractor."""
    user = run.user
    assert user is not None
    text = without_recalled(str(run.request.input)).encode("utf-8", "replace")[:MAX_BYTES].decode("utf-8", "ignore")
    if not text.strip() or (method == "rules" and announces(_written_before(run))):
        return FoundFacts(())
    metered: list[_Metered] = []

    def counted() -> ChatModel:
        metered.append(_Metered(model()))
        return metered[-1]

    speaker = speaker_of(user)
    facts = await extractor("llm" if method == "model" else method, counted).extract(
        [SourceMessage(run.run_id, speaker, text, time_of(run.run_id), "user")]
    )
    kept = tuple(_of_user(facts[:MAX_FACTS], user, speaker))
    return FoundFacts(kept, len(facts) - len(kept), sum((one.usage for one in metered), Usage()))


def _written_before(run: OpenRun) -> str:
    """Return what the user said last before the run's input, as far as its model read it; "" for nothing."""
    earlier = [one.content for one in run.messages[:-1] if one.role == "user" and not one.content.startswith(FENCE)]
    return earlier[-1] if earlier else ""


def speaker_of(user: User) -> str:
    """Return how facts name the user."""
    return UNNAMED if user.name is None else user.name.strip()


def _of_user(facts: Sequence[ExtractedFact], user: User, speaker: str) -> list[ExtractedFact]:
    """Return the facts with the user's own subject for what is about them, so that a later name changes nothing."""
    own = {subject_of(speaker), *map(entity, names_of(user))}
    return [replace(fact, subject=user_subject(user.id)) if fact.subject in own else fact for fact in facts]
