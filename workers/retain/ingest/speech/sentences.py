"""What a speaker states about themselves: clauses, without questions, quotations, conditions, guesses, others' words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from retain.ingest.languages import LANGUAGES
from retain.ingest.languages.language import Language, Speech
from retain.ingest.speech.brought import announces_text, own_sentences

MAX_SENTENCE = 400
"""Longer sentences are not read: they seldom state something plainly."""
_FLAGS = re.IGNORECASE

_PLAIN_MARKS = {
    0x2018: "'", 0x2019: "'", 0x2013: "-", 0x2014: " - ", 0x201E: '"', 0x201C: '"', 0x201D: '"', 0xA0: " ",
    0x37E: "? ", 0x61F: "? ", 0x203D: "? ", 0x2047: "? ", 0x2048: "? ", 0x2049: "? ", 0xFF1F: "? ",
    0xFF01: "! ", 0x3002: ". ",
}  # fmt: skip
"""Typographic marks and those of other scripts, and their plain replacements."""

_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)
_REPLIED_TO = re.compile(
    r"^(?:On .{4,120} wrote:|-+ ?(?:Original|Forwarded) message ?-+|Begin forwarded message:).*\Z",
    _FLAGS | re.DOTALL | re.MULTILINE,
)
# Lines begin with spaces alone: `\s*` would read all following empty lines again at each of them.
_QUOTED_LINE = re.compile(r"^[^\S\n]*(?:>|\||#{1,6}\s).*$", re.MULTILINE)
_HEADED_LINE = re.compile(
    r"^[^\S\n]*\**(?P<head>[^\W_][\w .'()-]{0,40}?(?:\(\d{1,2}:\d\d[^)\n]{0,10}\))?)\**:(?:\**\s.*)?$", re.MULTILINE
)
"""A line with a head and a colon: of a transcript, if the head is a speaker (`_is_speaker`)."""
_ROLES = frozenset(
    {
        "agent", "ai", "answer", "assistant", "bot", "caller", "client", "customer", "developer", "human",
        "interviewer", "model", "operator", "question", "speaker", "support", "system", "tool", "user",
    }
)  # fmt: skip
_HEADINGS = frozenset(
    {
        "a", "about", "aclaración", "actualización", "actually", "address", "además", "adresse", "age", "aggiornamento",
        "alergias", "allergie", "allergies", "also", "anniversary", "announcement", "anyway", "aside", "au", "big",
        "birthday", "breaking", "btw", "by", "cellulare", "ciao", "clarification", "clear", "compleanno", "comunque",
        "context", "corrección", "correction", "correo", "cumpleaños", "dato", "datos", "dear", "dirección",
        "disclaimer", "e-mail", "edit", "email", "employer", "exciting", "fact", "facts", "final", "first", "from",
        "fun", "fyi", "general", "going", "good", "great", "happy", "heads", "hello", "hey", "hi", "hinweis", "home",
        "i", "important", "importante", "in", "indirizzo", "info", "information", "inoltre", "job", "just", "kurz",
        "last", "lavoro", "ma", "me", "mein", "meine", "mi", "mia", "mio", "mis", "mise", "mobile", "mon", "my",
        "móvil", "nachtrag", "name", "nb", "new", "news", "next", "nombre", "nome", "nota", "note", "notice", "now",
        "oh", "on", "once", "one", "our", "p.d", "p.s", "pd", "personal", "petit", "phone", "plan", "please", "point",
        "por", "posdata", "postscript", "precisazione", "promemoria", "précision", "ps", "quick", "random", "rappel",
        "recap", "recordatorio", "reminder", "resumen", "rettifica", "riassunto", "sad", "second", "short", "side",
        "small", "so", "status", "still", "summary", "telefono", "teléfono", "the", "then", "thing", "things", "third",
        "to", "today", "trabajo", "true", "truth", "update", "updates", "we", "well", "wichtig", "work", "zur",
        "übrigens",
    }
)  # fmt: skip
"""First words of heads that introduce the writer's words: "By the way:", "Quick update:", "Au fait :", "Por cierto:"."""
_NAME_WORD = re.compile(r"(?:[A-Z][\w.'-]*|\d+|(?:van|von|der|de|di|da|del|bin|al|la)|\(.*\))")
_QUOTATION = re.compile(r'"[^"«»]{1,2000}["»]|«[^"«»]{1,2000}["»]|»[^"«»]{1,2000}«')
_MARKS = re.compile(r"""["«»]|(?<!\w)'(?=\w)""")
_SENTENCE = re.compile(
    r"""(?<=[.!?…])["')\]]*(?!(?<=\d\.)\s+(?:Jan|Feb|Mär|Apr|Mai|Jun|Jul|Aug|Sep|Okt|Nov|Dez))\s+(?=\S)"""
    r"""|\n+|,?\s+(?=¿[Yy]\b)"""
)
"""After a number and its full stop a German month follows: "am 3. Mai". "Vivo en Roma, ¿y tú?" states where, and asks."""
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dra?|Sig|Dott|Prof|St|Jr|Sra?|vs|No|approx)|\b[A-Z])\.$")
_AFTER_LETTERS = re.compile(r"[\W_]*\Z")
"""The end of a sentence, with its mark among whatever else is there: "?", "?\U0001f914", "?!~"."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a statement, without introductory words. negated: it denies something, or may do so."""

    text: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that states something plainly. whole: without introductory words. clauses: its pieces."""

    language: Language
    whole: Clause
    clauses: tuple[Clause, ...]


def statements(text: str) -> Iterator[Statement]:
    """Yield what the text states plainly about its speaker, in order. What is not plain is left out.

    A sentence is read in each language in which it may speak of somebody: "me" is English, and French.
    """
    for sentence in own_sentences(_sentences(_own_words(text))):
        for language in LANGUAGES:
            speech = language.speech
            if _is_plain(sentence, speech):
                parts = [part for piece in _pieces(sentence, speech) for part in _contrasted(piece, speech)]
                clauses = [clause_of(part, speech) for part in parts]
                yield Statement(language, clause_of(sentence, speech), tuple(one for one in clauses if one.text))


def announces(text: str) -> bool:
    """Return whether a message only announces a text that its sender's next message is: "Can you proofread my essay?"."""
    return announces_text([*_sentences(_own_words(text))])


def _own_words(text: str) -> str:
    """Return the text without code, quoted mails and lines of transcripts; quotations become a lone quotation mark."""
    text = text.translate(_PLAIN_MARKS).replace("\r\n", "\n")
    for pattern in (_CODE, _REPLIED_TO, _QUOTED_LINE):
        text = pattern.sub("\n", text)
    text = _HEADED_LINE.sub(lambda line: "\n" if _is_speaker(line["head"]) else line[0], text)
    if text.count('"') % 2:
        # A quotation is not closed: it is unknown which of these words are the speaker's own.
        text = "\n".join(part for part in re.split(r"\n\s*\n", text) if part.count('"') % 2 == 0)
    return _QUOTATION.sub(' " ', text)


def _is_speaker(head: str) -> bool:
    """Return whether the head of a line names somebody whose words follow, instead of introducing the writer's own."""
    parts = head.split()
    first = parts[0].casefold().rstrip(".")
    if first in _ROLES:
        return True
    return first not in _HEADINGS and (len(parts) == 1 or all(_NAME_WORD.fullmatch(part) for part in parts))


def _sentences(text: str) -> Iterator[str]:
    pending = ""
    for part in _SENTENCE.split(text):
        pending = " ".join(
            [*pending.split(), *part.split()]
        )  # where clauses begin, many spaces would be read again at each
        if len(pending) > MAX_SENTENCE or _ABBREVIATION.search(pending[-8:]) is None:
            if pending:
                yield pending
            pending = ""
    if pending:
        yield pending


def _is_plain(sentence: str, speech: Speech) -> bool:
    return speech.personal.search(sentence) is not None and not (
        len(sentence) > MAX_SENTENCE
        or "?" in _end_of(sentence)
        or speech.asking.match(sentence)
        or _MARKS.search(sentence)
        or speech.hedged.search(sentence)
        or speech.reported.search(sentence)
    )


def _end_of(sentence: str) -> str:
    found = _AFTER_LETTERS.search(sentence)
    return "" if found is None else found[0]


def _pieces(sentence: str, speech: Speech) -> Iterator[str]:
    """Yield the pieces of a sentence, cut where a new subject begins after a comma, a dash or a conjunction."""
    start = 0
    for cut in speech.new_subject.finditer(sentence):
        if cut.start() > start and speech.joined.search(cut[0]):
            yield sentence[start : cut.start()]
            start = cut.end()
    yield sentence[start:]


def _contrasted(piece: str, speech: Speech) -> Iterator[str]:
    """Yield the piece, in two parts if it ends with what it corrects: "I live in Rome" and "not Paris"."""
    cut = None if speech.contrast is None else speech.contrast.search(piece)
    yield piece if cut is None else piece[: cut.start()]
    if cut is not None:
        yield cut["other"]


def clause_of(text: str, speech: Speech) -> Clause:
    """Return a piece of a statement as a clause."""
    lead = speech.lead.match(text)
    rest = text[lead.end() :] if lead else text
    rest = rest.strip().rstrip(".!…;,: ")
    return Clause(rest, speech.negated.search(rest) is not None)
