"""Extraction by rules: deterministic, without a model."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from retain.ingest.extraction import DENIED, ENDED, ExtractedFact, SourceMessage, ending_of, predicate_of, subject_of
from retain.ingest.rules import RULES
from retain.ingest.rules.rule import ExtractionRule, compiled
from retain.ingest.speech.endings import endings
from retain.ingest.speech.sentences import Clause, Statement, announces, clause_of, statements

MAX_OBJECT = 240
"""Largest length of an object; a longer one was not understood."""
MAX_THING_WORDS = 8

_THING_ENDS = re.compile(
    r"\s*(?:[;:()]|\s-\s|(?:\b(?:even|just|mainly|mostly|only|simply|purely|partly) )*\b(?:"
    r"because|since|so|but|when|whenever|while|as|if|that(?! (?:much|often)\b)(?=(?:'|\s+)\w)|which|who|where|though|"
    r"although|except|especially|until|before|after|(?:(?:rather|other|more|less|better) )?than|thanks)\b).*$",
    re.IGNORECASE,
)
"""Where something else begins, with the words of degree that belong to it: "rather than", "even though"."""
_JOINED_DEED = re.compile(
    r"(?<!every now)(?:,? and|,) (?=(?:(?:I|you|he|she|we|they|it|my|your|his|her|our|their|am|is|are|was|were|have|has|"
    r"had|do|did|don't|can|will|then|also|not|never|always)\b|"
    r"\w+ (?:it|them|him|her|me|you|us|a lot|daily|often|every|my|the)\b|"
    r"(?:the|a|an) \w+ (?:is|are|was|were)\b)).*$",
    re.IGNORECASE,
)
_DEED_ENDS = re.compile(r"(?:,? (?:so|but|because|since) |,? (?:please|thanks|thank you|ok|okay)$).*$", re.IGNORECASE)
_UNFINISHED = re.compile(
    r"(?:^|\s)(?:to|of|for|with|in|at|on|by|and|or|the|a|an|my|from|about|every|very|like|not)$", re.IGNORECASE
)
_TAIL = re.compile(
    r"(?:,? (?:too|as well|a (?:lot|bit|little)|(?:(?:all )?that |so |very |way too )?much|"
    r"the most|the best|best|(?<!be )(?<!get )better|rather|most of all|more than anything|more|these days|lately|though|"
    r"tho|anyways?|(?<!ing )myself|in general|overall|for sure|please|thank you|to be honest|"
    r"I (?:do )?have to (?:admit|say)|actually|really|at all|any ?more|either|(?:right )?now|sometimes|"
    r"(?:all|most) of the time|all the time|from time to time|(?:every )?(?:now and then|once in a while)|"
    r"(?:ha){2,}h?|lol|lmao|tbh|imo|btw|xd))+$",
    re.IGNORECASE,
)
"""Words after a thing that say how much, how often or how seriously: they are not part of it."""
_NO_THING = re.compile(
    r"(?:and|or|but|like|don't|dont|it|that|this|these|those|them|him|her|us|you|me|your|his|their|its|one|ones|both|all|"
    r"everything|anything|something|nothing|some|how|what|when|where|why|who|whatever|either|being told|"
    r"to (?:say|see|hear|know|think|be honest|bother|admit|ask|thank)|"
    r"(?:a|an) (?:idea|way|look|sound|fact|thought|part|thing))\b",
    re.IGNORECASE,
)
# "The" refers to something in the conversation, unless a name or something unique follows.
_DEFINITE = re.compile(
    r"[Tt]he (?!(?:sea|seaside|beach|outdoors|mountains|ocean|theatre|theater|opera|rain|snow|piano|violin|guitar|"
    r"(?:colou?r|taste|smell|sound) of)\b)[a-z]"
)
_POINTING = re.compile(
    r"\b(?:you|your|yours|it|its|this|that|these|those|them|him|her|us|me|myself|here|there|one|ones)\b", re.IGNORECASE
)
_AFTER_ENDED = re.compile(
    r"\s*(?:$|[.,;:!)(]|-\s|\b(?:and|but|since|now|because|so|as of|after|due|though|either|at all|"
    r"currently|daily|to|any ?more|"
    r"last|this|yesterday|today|recently|(?:a|an|one|two|three|some) \w+ ago|in (?:\d|January|February|March|April|May|June|"
    r"July|August|September|October|November|December)|"
    r"any longer|for my|against my)\b)",
    re.IGNORECASE,
)
"""What may follow the object of a fact that is over."""
_SPELLINGS = {"colour": "color", "flavour": "flavor", "programme": "program", "theatre": "theater"}
_WORDS = re.compile(r"[\w'&/+.-]+")


class RuleExtractor:
    """Implements `Extractor` by the table of rules. Reads English; finds no facts in other languages."""

    batch = 100
    local = True

    async def extract(self, messages: Sequence[SourceMessage]) -> list[ExtractedFact]:
        """Return the facts that people state plainly about themselves, not in a text that they announced. Raises nothing."""
        found: list[ExtractedFact] = []
        announced = set[str]()
        for message in messages:
            if message.by_machine:
                continue
            if message.speaker not in announced:
                found += facts_of(message)
            announced.discard(message.speaker)
            if announces(message.content):
                announced.add(message.speaker)
        return found


def facts_of(message: SourceMessage) -> list[ExtractedFact]:
    """Return the facts of one message, in the order in which they are stated, each once."""
    found: dict[str, ExtractedFact] = {}
    for statement in statements(message.content):
        for fact in _of_statement(statement, message):
            found.setdefault(f"{fact.predicate} {fact.object}", fact)
    return list(found.values())


def _of_statement(statement: Statement, message: SourceMessage) -> Iterator[ExtractedFact]:
    for rule in RULES:
        if rule.whole and _reads(rule, statement.whole):
            yield from _of_clause(rule, statement.whole, message)
    for clause in statement.clauses:
        denies = False
        for rule in RULES:
            if not rule.whole and _reads(rule, clause):
                for fact in _of_clause(rule, clause, message):
                    denies = denies or rule.denial == "required"
                    yield fact
        if not denies:  # "I don't eat meat any more" states something that has begun
            yield from _ended(clause, statement.whole.text, message)


def _ended(clause: Clause, sentence: str, message: SourceMessage) -> Iterator[ExtractedFact]:
    """Yield what a clause ends or denies."""
    for ending in endings(clause.text, sentence):
        positive = clause_of(ending.positive)
        prefix = ENDED if ending.kind == "ended" else DENIED
        for rule in RULES:
            if rule.can_end and _reads(rule, positive):
                yield from _of_clause(rule, positive, message, prefix)


def _reads(rule: ExtractionRule, clause: Clause) -> bool:
    return rule.denial == "either" or (rule.denial == "required") == clause.negated


def _of_clause(
    rule: ExtractionRule, clause: Clause, message: SourceMessage, ending: str = ""
) -> Iterator[ExtractedFact]:
    """Yield the facts that a rule finds in a clause. ending: the prefix of their predicates, if they are over."""
    pattern = compiled(rule.pattern)
    for match in pattern.finditer(clause.text) if rule.anywhere else filter(None, [pattern.match(clause.text)]):
        found = _object(rule, match["object"])
        if found is None or (ending and not _is_all(clause.text[match.end("object") :])):
            continue
        groups = {name: text or "" for name, text in match.groupdict().items() if name != "object"}
        name = rule.predicate.format(**{name: _name(text) for name, text in groups.items()})
        phrase = rule.ended_phrase if ending else rule.phrase
        yield ExtractedFact(
            subject_of(message.speaker),
            ending_of(ending, name, found) if ending else predicate_of(name, found, functional=rule.functional),
            found,
            phrase.format(speaker=message.speaker, object=found, **groups),
            rule.kind,
            rule.confidence,
            message.id,
        )


def _is_all(rest: str) -> bool:
    """Return whether the end of a clause leaves what is over whole: "on Fridays" would not."""
    return _AFTER_ENDED.match(rest) is not None


def _object(rule: ExtractionRule, text: str) -> str | None:
    """Return the object as the rule reads it, None if it is not understood."""
    text = " ".join(text.split())
    if rule.reading == "thing":
        text = _TAIL.sub("", _JOINED_DEED.sub("", _THING_ENDS.sub("", text))).strip(" ,.'")
        if not _is_thing(text):
            return None
    elif rule.reading == "deed":
        text = _DEED_ENDS.sub("", text)
    text = text.strip(" ,")
    return text if 0 < len(text) <= MAX_OBJECT else None


def _is_thing(text: str) -> bool:
    words = _WORDS.findall(text)
    return 0 < len(words) <= MAX_THING_WORDS and not (
        _NO_THING.match(text) or _DEFINITE.match(text) or _POINTING.search(text) or _UNFINISHED.search(text)
    )


def _name(text: str) -> str:
    """Return words as part of a relation's name, in one spelling: a favourite colour is a favorite color."""
    return "_".join(_SPELLINGS.get(word, word) for word in re.split(r"\W+", text.casefold()) if word)
