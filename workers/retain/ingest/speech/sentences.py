"""What a speaker states about themselves: clauses, without questions, quotations, conditions, guesses, others' words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
        "a", "about", "actually", "address", "age", "allergies", "also", "anniversary", "announcement", "anyway",
        "aside", "big", "birthday", "breaking", "btw", "by", "clarification", "clear", "context", "correction", "dear",
        "disclaimer", "e-mail", "edit", "email", "employer", "exciting", "fact", "facts", "final", "first", "from",
        "fun", "fyi", "general", "going", "good", "great", "happy", "heads", "hello", "hey", "hi", "home", "i",
        "important", "in", "info", "information", "job", "just", "last", "me", "mobile", "my", "name", "nb", "new",
        "news", "next", "note", "notice", "now", "oh", "on", "once", "one", "our", "p.s", "personal", "phone", "plan",
        "please", "point", "postscript", "ps", "quick", "random", "recap", "reminder", "sad", "second", "short", "side",
        "small", "so", "status", "still", "summary", "the", "then", "thing", "things", "third", "to", "today", "true",
        "truth", "update", "updates", "we", "well", "work",
    }
)  # fmt: skip
"""First words of heads that introduce the writer's words: "By the way:", "Quick update:", "My address:", "PS:"."""
_NAME_WORD = re.compile(r"(?:[A-Z][\w.'-]*|\d+|(?:van|von|der|de|di|da|del|bin|al|la)|\(.*\))")
_QUOTATION = re.compile(r'["«][^"«»]{1,2000}["»]')
_MARKS = re.compile(r"""["«»]|(?<!\w)'(?=\w)""")
_SENTENCE = re.compile(r"""(?<=[.!?…])["')\]]*\s+(?=\S)|\n+""")
_ABBREVIATION = re.compile(r"(?:\b(?:Mr|Mrs|Ms|Dr|Prof|St|Jr|Sr|vs|No|approx)|\b[A-Z])\.$")
_ASKING = re.compile(
    r"(?:(?:and|but|so|or|ok|okay|hey|hi|well),? )*(?:who|whom|whose|what|when|where|why|how|which|do|does|did|is|are|am|"
    r"was|were|can|could|will|would|shall|should|have you|has|had|may|might)\b",
    _FLAGS,
)
_HEDGED = re.compile(
    r"\b(?:if|unless|whether|would|wouldn't|could|couldn't|might|maybe|perhaps|probably|possibly|wish|wished|hope|"
    r"suppose|supposing|imagine|pretend|pretending|hypothetically|assume|assuming|let's say|guess|doubt|kidding|joking|"
    r"joke|sarcasm|dreamt|dreamed|what if|as though|in case|not sure|unsure|supposedly|allegedly|fictional|"
    r"(?<!\bI )(?<!\bwe )used to|character|lyrics|novel|role-?play|for example|e\.g|for instance|template|"
    r"placeholder)\b|\bmay\b(?! \d)|\bI'd\b",
    _FLAGS,
)
_PERSONAL = re.compile(
    r"\b(?:I|I'm|Im|my|me|we|our|always|never|ever|from now on|from here on|going forward|future)\b", _FLAGS
)
"""Words without which nobody speaks about themselves or what they want: most sentences have none of them."""
_MAY_IS_A_MONTH = re.compile(r"\bMay\b")
_AFTER_LETTERS = re.compile(r"[\W_]*\Z")
"""The end of a sentence, with its mark among whatever else is there: "?", "?\U0001f914", "?!~"."""
_REPORTED = re.compile(
    r"\b(?:goes|went)[,:]|\b(?:was|were) (?:all |just )?like(?:,| (?:I|my|we)\b)|(?:\bis|\bare|'s|'re) (?:all |just )?like,|"
    r"\b(?:said|says|saying|told (?:me|him|her|us|them)|tells|asked|asks|wrote|writes|claims?|claimed|according to|"
    r"quot(?:e|es|ed|ing)|thinks|thought|believes|believed|heard|overheard|reads|replied|replies|answered|announced|"
    r"insists|insisted)\b",
    _FLAGS,
)
_NEGATED = re.compile(
    r"\b(?:not|never|no|nor|neither|none|nobody|nothing|nowhere|hardly|barely|without|cannot|cant|dont|doesnt|didnt|"
    r"isnt|wasnt|wont)\b|n't\b",
    _FLAGS,
)
_CONJUNCTION = "(?:and|but|so|because|since|although|though|while|whereas|or|yet|plus|also|as)"
_CLAUSE = re.compile(
    rf"(?:\s*[,;:]|\s+-)?\s+(?:{_CONJUNCTION} )*(?=(?:I|I'm|I've|my|we|we're|we've|our|he|she|they|you|it|it's|there|please|"
    r"remind me|call me|from now on|going forward)\b)",
    _FLAGS,
)
_JOINING = re.compile(rf"[,;:]|\s-\s|\b{_CONJUNCTION}\s*$", _FLAGS)
_CONTRAST = re.compile(
    r"(?:\s*[,;]\s*(?:(?:and|but) )?|\s+-+\s+|\s+(?:and|but) )(?P<other>not "
    r"(?!(?:(?:in|at|for|from|as|with|to) )?(?:all|always|any|any ?more|by|certain|currently|even|ever|exactly|far|if|just|"
    r"lately|least|less|like|long|many|more|most|much|necessarily|now|often|on|one|only|quite|real|really|right|since|so|"
    r"sure|that|then|these|this|today|too|true|until|usually|very|when|where|which|while|who|yet|your|"
    r"(?:a|an|the) (?:bit|chance|hundred|least|little|lot|million|moment|slightest|thousand))\b)"
    r"[^\s,;:!?]+(?: [^\s,;:!?]+){0,4})[\s.!\u2026-]*$",
    _FLAGS,
)
"""The end of a piece that says what is not so instead: ", not Paris". Without what denies all of it: ", not really"."""
_LEAD = re.compile(
    r"(?:(?:hi|hello|hey|hiya|well|yes|yeah|yep|yup|no|nope|ok|okay|oh|ah|so|and|but|also|plus|actually|btw|by the way|"
    r"anyway|honestly|fyi|right|sure|great|cool|nice|thanks|thank you|sorry|please note(?: that)?|note that|"
    r"I meant(?: to say)?(?: that)?|I mean(?= ?,)|just so you know|as you know|as I told you|remember that|"
    r"good (?:morning|afternoon|evening)|dear \w+|"
    r"nice to meet you|(?:there|everyone|all|again|see|look|listen)(?=[,.!:]))\b[\s,.!:;-]*)+",
    _FLAGS,
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a statement, without introductory words. negated: it denies something, or may do so."""

    text: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence that states something plainly. whole: without introductory words. clauses: its pieces."""

    whole: Clause
    clauses: tuple[Clause, ...]


def statements(text: str) -> Iterator[Statement]:
    """Yield what the text states plainly about its speaker, in order. What is not plain is left out."""
    for sentence in own_sentences(_sentences(_own_words(text))):
        if _is_plain(sentence):
            pieces = [clause_of(part) for piece in _pieces(sentence) for part in _contrasted(piece)]
            yield Statement(clause_of(sentence), tuple(piece for piece in pieces if piece.text))


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
        pending = f"{pending} {part}".strip() if pending else part.strip()
        if len(pending) > MAX_SENTENCE or _ABBREVIATION.search(pending[-8:]) is None:
            if pending:
                yield pending
            pending = ""
    if pending:
        yield pending


def _is_plain(sentence: str) -> bool:
    return _PERSONAL.search(sentence) is not None and not (
        len(sentence) > MAX_SENTENCE
        or "?" in _end_of(sentence)
        or _ASKING.match(sentence)
        or _MARKS.search(sentence)
        or _HEDGED.search(_MAY_IS_A_MONTH.sub("", sentence))
        or _REPORTED.search(sentence)
    )


def _end_of(sentence: str) -> str:
    found = _AFTER_LETTERS.search(sentence)
    return "" if found is None else found[0]


def _pieces(sentence: str) -> Iterator[str]:
    """Yield the pieces of a sentence, cut where a new subject begins after a comma, a dash or a conjunction."""
    start = 0
    for cut in _CLAUSE.finditer(sentence):
        if cut.start() > start and _JOINING.search(cut[0]):
            yield sentence[start : cut.start()]
            start = cut.end()
    yield sentence[start:]


def _contrasted(piece: str) -> Iterator[str]:
    """Yield the piece, in two parts if it ends with what it corrects: "I live in Rome" and "not Paris"."""
    cut = _CONTRAST.search(piece)
    yield piece if cut is None else piece[: cut.start()]
    if cut is not None:
        yield cut["other"]


def clause_of(text: str) -> Clause:
    """Return a piece of a statement as a clause."""
    lead = _LEAD.match(text)
    rest = text[lead.end() :] if lead else text
    rest = rest.strip().rstrip(".!…;,: ")
    return Clause(rest, _NEGATED.search(rest) is not None)
