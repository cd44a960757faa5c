"""Texts that a message brings to be worked on, and roles that it plays: what they say is not what their sender says.

"Translate into German: I live in Paris." tells nothing of who asks, and most messages to an assistant bring a text. So the
rules take nothing from one, nor from what follows the opening of a play ("Act as a nurse. I am your patient …").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_FLAGS = re.IGNORECASE
_TEXT = (
    r"(?:text|passage|paragraphs?|sentences?|phrases?|lines?|words?|e-?mails?|letter|messages?|essay|draft|article|story|poem|"
    r"speech|posts?|tweets?|bio|biography|grammar|spelling|wording|writing|paper|abstract|r[eé]sum[eé]|CV|statement|lyrics|"
    r"dialogs?|dialogues?|transcript|review|report|caption|profile|conversation|chat|diary|journal|translation|summary|introduction|"
    r"conclusion|chapter|script|monologue|song|quote|English|version)"
)
_WORK = (
    r"(?:translate|proof-?read|paraphrase|re-?phrase|re-?word|re-?write|re-?formulate|summari[sz]e|edit|correct|improve|polish|"
    r"shorten|simplify|fix|check|review|revise|analy[sz]e|critique|grade|rate|humani[sz]e|format|continue|complete|finish|"
    r"reply to|respond to|answer|expand(?: on)?|extend|convert|turn|change|make)"
)
_ASKED = (
    r"^\W*(?:(?:hi|hello|hey|ok|okay|so|now|please|pls|kindly|just|and|then|can you|could you|would you|will you|"
    r"can u|help me(?: to)?|(?:I|I'd) (?:want|need|like)(?: for)? you to|I need help (?:to|with)|let's)\b\W*)*"
)
_NO_TEXT = (
    r"(?!.*\b(?:(?:about|of) (?:me|myself|us)|code|config\w*|css|errors?|examples?|functions?|html|implementation|logs?|"
    r"output|query|snippets?|stack)\b)"
)
"""Not followed by what the speaker is about to say of themselves, nor by code, which is left out by its marks."""
_BROUGHT = re.compile(
    rf"{_ASKED}(?:{_WORK}(?:ing)?\b[^.!?\n:]*?\b"
    rf"(?:this|these|the following|below|above|(?:my|the|a|an|our) (?:\w+ )??{_TEXT})\b|"
    r"(?:translate|paraphrase|re-?phrase|re-?write|summari[sz]e|proof-?read|correct|shorten|continue)\b[^.!?\n:]{0,60}:|"
    r"(?:translate|convert|turn|put)\b[^.!?\n]*\binto\b|translate\b[^.!?\n]*\bto\b|"
    rf"(?:how|what)\b[^.!?\n]*\b(?:this|my) {_TEXT}\b|is (?:this|my) {_TEXT}\b|"
    rf"(?:here(?:'s| is| are)|below is|see|read|attached is)\b[^.!?\n:]*\b(?:{_TEXT})\b|"
    rf"(?:here(?:'s| is| are)|this is|below|the following|given|consider|look at|read|see)\b{_NO_TEXT}[^.!?\n]*:\s*$|"
    rf"(?:my |the |original |first )*{_TEXT}(?: \d+)?\s*:)|"
    r"\b(?:\u00fcbersetz|korrigier|traduis|traduire|traduisez|corrige|corr\u00edge|corrija|trad[u\u00fa]ce|traduzc|"
    r"traduci|traduz|vertaal|\u043f\u0435\u0440\u0435\u0432\u0435\u0434)"
    r"|\u7ffb\u8bd1|\u7ffb\u8b6f|\u8a33\u3057"
    r"|\b(?:formulier|reformule|r\u00e9sume[zr]?\b|res\u00fame|reescrib|correggi|riassumi|riscriv|fasse? (?:den|das|"
    r"die|diesen|folgende))|"
    r"\b(?:hier (?:ist|kommt)|das ist|voici|voil\u00e0|c'est) (?:mein\w*|der|die|das|mon|ma|le|la) (?:\w+ )?"
    r"(?:text|aufsatz|brief|entwurf|e-?mail|lebenslauf|anschreiben|gedicht|texte|lettre|essai|r\u00e9daction|"
    r"brouillon|cv|po\u00e8me)\b|"
    r"\b(?:aqu\u00ed (?:est\u00e1|tienes|va)|[\u00e9e]st[ea] es) (?:mi|el|la|un|una) (?:\w+ )?"
    r"(?:texto|carta|ensayo|redacci\u00f3n|borrador|correo|poema|curr\u00edculum|art\u00edculo)\b|"
    r"\b(?:ecco|questo \u00e8|questa \u00e8) (?:il mio|la mia|il|la|un|una|mia) (?:\w+ )?"
    r"(?:testo|lettera|tema|saggio|bozza|e-?mail|mail|poesia|curriculum|articolo)\b",
    _FLAGS,
)
"""A request to work on a text: in English in many words, in other languages in a few."""
_STANDING = re.compile(
    r"\b(?:always|from now on|going forward|in (?:the )?future|every time|each time|whenever)\b", _FLAGS
)
"""What is asked for ever asks for no work on a text that is here."""
_FOLLOWED = re.compile(r":\s*\S")
_MADE_UP = re.compile(
    rf"{_ASKED}(?:write|draft|compose|generate|create|make up|invent|tell)\b[^.!?\n]*\b(?:{_TEXT}|joke|tale|novel|scene|"
    r"haiku|limerick|rap|ad|slogan|greeting|invitation|testimonial|complaint)\b",
    _FLAGS,
)
"""A request for a new text: what the same sentence says may be what the text shall say."""
_PLAYED = re.compile(
    rf"{_ASKED}(?:act|behave|speak|talk|respond|pose) (?:as|like)\b|"
    rf"{_ASKED}(?:pretend|role-?play|simulate|imagine)\b|\bplay(?:ing)? the (?:role|part) of\b|"
    r"^\W*(?:act\u00faa como|finge (?:que|ser)|haz de|comportati come|agisci come|fai finta)\b|"
    r"^\W*(?:you are|you're|you will be|be) (?:now )?(?:an?|the|my) (?!(?:life-?saver|genius|star|legend|gem|angel|saint|"
    r"godsend|great|good|true|real|wonderful|amazing|big|huge|total|absolute)\b)|\b(?:scenario|role)\s*:",
    _FLAGS,
)
"""The opening of a play: who says "I" from there on is somebody else."""
_FEW_WORDS = 8
"""So many words before a request are a greeting, and no text."""


def announces_text(sentences: Sequence[str]) -> bool:
    """Return whether a message asks for work on a text that is not in it: its sender's next message is that text."""
    *before, last = sentences or [""]
    alone = sum(len(sentence.split()) for sentence in before) <= _FEW_WORDS
    return alone and _asks_for_work(last) and not _FOLLOWED.search(last)


def own_sentences(sentences: Iterable[str]) -> list[str]:
    """Return the sentences before a text that the message brings, or a play that it opens, without requests for new texts.

    Where nothing follows a request to work on a text, it means what is before it, so nothing is left.
    """
    every = list(sentences)
    own: list[str] = []
    for number, sentence in enumerate(every):
        if _PLAYED.search(sentence):
            return own
        if _asks_for_work(sentence):
            follows = number + 1 < len(every) or _FOLLOWED.search(sentence) is not None
            return own if follows else []
        if not _MADE_UP.search(sentence):
            own.append(sentence)
    return own


def _asks_for_work(sentence: str) -> bool:
    return _BROUGHT.search(sentence) is not None and not _STANDING.search(sentence)
