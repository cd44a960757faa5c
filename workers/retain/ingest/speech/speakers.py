"""Who speaks in a conversation: a person, whose statements about themselves are facts, or a machine, whose are not.

A message's role decides. Without one the speaker's name does, by a list that is only the fallback: it names what
assistants are usually called, and a name that it does not have is a person's. So a person called Claude needs the role
`user` to be believed, and an assistant with an invented name needs the role `assistant` not to be.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, get_args

Role = Literal["user", "assistant", "system", "developer", "tool", "function"]
"""The roles of chat messages. Only a `user` is a person."""
ROLES: tuple[Role, ...] = get_args(Role)

_MACHINES = frozenset(
    {
        "ai", "agent", "alexa", "assistant", "automation", "bixby", "bot", "chat bot", "chatbot", "chat gpt", "chatgpt",
        "claude", "copilot", "cortana", "customer care", "customer service", "deepseek", "developer", "function",
        "gemini", "gpt", "grok", "help desk", "helpdesk", "llama", "llm", "mistral", "model", "notifications",
        "perplexity", "qwen", "service", "service desk", "siri", "support", "system", "tool", "virtual agent", "webhook",
    }
)  # fmt: skip
_LAST_WORDS = frozenset(
    {"ai", "agent", "assistant", "automation", "bot", "chatbot", "copilot", "desk", "gpt", "helpdesk", "llm", "support"}
)
"""What the name of a machine ends with: "Support Bot", "Acme AI", "Acme Support"."""
_VERSIONED = re.compile(r"(?:chat ?gpt|claude|gemini|gpt|grok|llama|mistral|qwen|deepseek)\b.*\d")
_NUMBERED = re.compile(r"(?:ai|agent|assistant|bot|chatbot) \d+")
_HUMPS = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_WORDS = re.compile(r"[\W_]+")


def is_machine(speaker: str, role: Role | None = None) -> bool:
    """Return whether a speaker is not a person, so its statements about itself are not facts. role: decides, if given."""
    if role is not None:
        return role != "user"
    name = _NO_WORDS.sub(" ", _HUMPS.sub(" ", unicodedata.normalize("NFKC", speaker))).casefold().strip()
    together = name.replace(" ", "")
    return (
        name in _MACHINES
        or together in _MACHINES
        or name.rpartition(" ")[2] in _LAST_WORDS
        or _VERSIONED.match(name) is not None
        or _NUMBERED.fullmatch(name) is not None
    )
