"""What pages, docstrings, comments and messages do not say, as patterns: the table of CONTRIBUTING.md."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Phrase:
    """A row of the list.

    instead, write: the row's cells in CONTRIBUTING.md. pattern: of what is forbidden; a space matches any white space.
    allowed: patterns around the match in which the phrase is right.
    """

    instead: str
    write: str
    pattern: str
    allowed: tuple[str, ...] = ()

    def found(self, text: str) -> Iterator[re.Match[str]]:
        """Yield its matches in a text, except those in an allowed phrase."""
        matches = list(_compiled(self.pattern).finditer(text))
        if not matches:
            return  # most texts: the phrases that are right are not searched in them
        excused = [span.span() for one in self.allowed for span in _compiled(one).finditer(text)]
        for match in matches:
            if not any(start <= match.start() and match.end() <= end for start, end in excused):
                yield match


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)


PHRASES = (
    Phrase("is gone on with, goes on, let go on", "resumes, continues", r"\b(?:go|goes|going|gone|went) on\b"),
    Phrase("carries on", "continues", r"\bcarr(?:y|ies|ied|ying) on\b"),
    Phrase(
        "looks after (a delegate)",
        "checks on",
        r"\blook(?:s|ed|ing)? after\b",
        (r"look(?:s|ed|ing)? after (?:the|its|his|her) guests?",),
    ),
    Phrase(
        "behind (in time or order)",
        "after",
        r"\bbehind\b",
        (
            r"behind (?:Cloudflare )?Access",
            r"behind an? (?:\w+ )?(?:proxy|protocol|port|interface|load balancer)",
            r"behind (?:Retain's|the|their|its) (?:ports?|protocols?|proxy|gateway|interfaces?|scenes|house)",
            r"behind the same (?:ports?|protocols?|interfaces?)",
            r"(?:lag(?:s|ged|ging)?|leaves?|left|leaving|was|is|be|fell|falls?|far|ms|minutes?) (?:\w+ ){0,6}behind",
        ),
    ),
    Phrase("anew", "again, from the beginning", r"\banew\b"),
    Phrase(
        "stands in, stands beside, as it stands, how it stands",
        "is in, is next to, unchanged, its state",
        r"\b(?:stands?|standing|stood) (?:in|beside|under|at|on|there|before|next|with|between|alone|behind|above)\b"
        r"|\bas (?:it|they) (?:stands?|stood)\b|\b(?:where|how) (?:\w+ ){1,3}(?:stands|stood)\b",
        (r"(?:stands?|standing|stood) in for", r"(?:stands?|standing|stood) in the way"),
    ),
    Phrase("beside", "next to, besides, with", r"\bbeside\b"),
    Phrase(
        "is no X",
        "is not an X",
        r"\b(?:is|are|was|were) no\b"
        r"(?! (?:longer|more|less|fewer|better|worse|larger|smaller|later|earlier|older|newer|other))",
        (r"(?:there|it) (?:is|are|was|were) no",),
    ),
    Phrase(
        "one that is none, that there is not",
        "one that is invalid, that does not exist",
        r"\b(?:is|are|was|were) (?-i:none)\b|\b(?:that|which) there (?:is|are) not\b",
        (r"there (?:is|are|was|were) none",),
    ),
    Phrase(
        "be it, but for, albeit, lest",
        "even if, except, although, so that not",
        r"\bbe it\b|\bbut for\b|\balbeit\b|\blest\b",
        (r"but for (?:up to|example|now|each)",),
    ),
    Phrase("nothing but", "only", r"\bnothing but\b"),
    Phrase(
        "holds anew, begins to hold (of a fact)",
        "becomes valid again, becomes valid",
        r"\b(?:begin(?:s|ning)?|began|starts?) to hold\b|\b(?:hold|holds|held) (?:anew|again|from|until|since|no longer)\b"
        r"|\bno longer holds?\b",
    ),
    Phrase(
        "one a line, one row a turn",
        "one per line, one row per turn",
        r"\b(?:(?:one|two|three)|(?:one|two|three|\d[\d,]*) (?!for|of|to|in|at|is|as|with|while|when|until|"
        r"if|by|from|on|or|and)\w+|once|twice|[KM]i?B|bytes) an? (?:line|turn|text|row|file|page|message|call|"
        r"case|part|store|tenant|instance|"
        r"isolate|request|session|key|record|scope|conversation|area|process|delegate|tool|agent|run|job|put|word|"
        r"document|item|version|workflow)\b",
    ),
    Phrase("told, tells (of an API call)", "recorded, reported, informed", r"\btold\b", (r"told apart", r"told from")),
    Phrase(
        "Tell whether, Return that", "Return whether, Return", r"\bTell (?:whether|if|that|how|which)\b|\bReturn that\b"
    ),
    Phrase(
        "its place, takes the place of",
        "position, replaces",
        r"\b(?:its|their|whose) places?\b|\btakes? the place\b|\bin place of\b",
    ),
    Phrase("its end", "expiry, result, completion (say which)", r"\b(?:its|their|whose) ends?\b"),
    Phrase(
        "thereby, therein, thereof, hence, upon",
        "so, in it, of it, therefore, on",
        r"\bthere(?:by|in|of|from|with)\b|\bhence\b|\bupon\b",
    ),
    Phrase("mend", "fix, repair", r"\bmend(?:s|ed|ing)?\b"),
    Phrase("gives back", "returns", r"\bgiv(?:e|es|en|ing) back\b|\bgave back\b"),
    Phrase("put down, laid down (of data)", "stored, written", r"\b(?:put|puts|putting|laid|lays) down\b"),
    Phrase("hand in, hand on", "pass, send", r"\bhand(?:s|ed|ing)? (?:in|on)\b"),
    Phrase("one's own, ones of one's own", "your own", r"\bone's own\b"),
    Phrase(
        "comes back (of a value or an item)",
        "is returned, reappears, reconnects",
        r"\b(?:come|comes|coming|came) back\b",
    ),
    Phrase(
        "how it is called", "what it is called, its name", r"\bhow (?:it|they|he|she) (?:is|are|was) (?:called|named)\b"
    ),
    Phrase("how-manieth, the manyth", "which, its number", r"\bhow-?manieth\b"),
    Phrase("worked off, works a job off", "processed, processes a job", r"\bwork(?:s|ed|ing)? (?:\w+ ){0,3}off\b"),
    Phrase(
        "what came of it, what becomes of it", "its outcome, its result", r"\bwhat (?:came|comes|became|becomes) of\b"
    ),
    Phrase("by itself (unasked)", "automatically, alone, on its own", r"\bby (?:itself|themselves)\b"),
    Phrase("by turns", "alternately", r"\bby turns\b"),
    Phrase("of before (the documents of before)", "earlier", r"\bof before\b"),
    Phrase("left away, leaves away", "left out, leaves out", r"\b(?:leave|leaves|leaving|left) away\b"),
    Phrase("past the server, past Retain", "bypassing the server", r"\bpast (?:the server|Retain|it|them)\b"),
    Phrase("looks into, looked at (by a job)", "checks, examined", r"\blook(?:s|ed|ing)? into\b"),
    Phrase("led to, leads on (of a cursor)", "reached, continues", r"\bleads? on\b"),
)
"""Each row of the table."""

NAMES = {
    "said": "reported, text, answer",
    "told": "reported, stated",
    "there_is": "exists, has",
    "go_on": "resume",
    "goes_on": "resumes",
    "gone_on": "resumed",
    "going_on": "resuming",
    "let_due": "expire",
    "carrying_out": "execution",
    "look_after": "check_on",
    "anew": "again",
    "beside": "next_to",
    "behind": "after",
    "mend": "repair",
    "mended": "repaired",
    "forgive": "reset, discount",
    "stands_in": "is_in",
}
"""Words that no name contains, each with its replacement. Names of tests are read as sentences as well."""
