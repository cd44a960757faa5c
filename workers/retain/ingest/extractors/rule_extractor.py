"""Extraction by rules: deterministic, without a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from retain.ingest.extraction import DENIED, ENDED, ExtractedFact, SourceMessage, ending_of, predicate_of, subject_of
from retain.ingest.languages.language import Language
from retain.ingest.languages.rule import ExtractionRule
from retain.ingest.speech.sentences import Clause, Statement, announces, clause_of, statements
from retain.memory.records.limits import MAX_PART_BYTES

MAX_OBJECT = 240
"""Largest length of an object; a longer one was not understood."""


class RuleExtractor:
    """Implements `Extractor` by the table of rules. Reads the languages that have rules; finds no facts in others."""

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
    language = statement.language
    for rule in language.rules:
        if rule.whole and _reads(rule, statement.whole):
            yield from _of_clause(language, rule, statement.whole, message)
    for clause in statement.clauses:
        denies = False
        for rule in language.rules:
            if not rule.whole and _reads(rule, clause):
                for fact in _of_clause(language, rule, clause, message):
                    denies = denies or rule.denial == "required"
                    yield fact
        if not denies:  # "I don't eat meat any more" states something that has begun
            yield from _ended(language, clause, statement.whole.text, message)


def _ended(language: Language, clause: Clause, sentence: str, message: SourceMessage) -> Iterator[ExtractedFact]:
    """Yield what a clause ends or denies."""
    for ending in language.endings(clause.text, sentence):
        positive = clause_of(ending.positive, language.speech)
        prefix = ENDED if ending.kind == "ended" else DENIED
        for rule in language.rules:
            if rule.can_end and _reads(rule, positive):
                yield from _of_clause(language, rule, positive, message, prefix)


def _reads(rule: ExtractionRule, clause: Clause) -> bool:
    return rule.denial == "either" or (rule.denial == "required") == clause.negated


def _of_clause(
    language: Language, rule: ExtractionRule, clause: Clause, message: SourceMessage, ending: str = ""
) -> Iterator[ExtractedFact]:
    """Yield the facts that a rule finds in a clause. ending: the prefix of their predicates, if they are over."""
    if not rule.may_read(clause.text.lower()):
        return
    pattern = language.pattern(rule)
    for match in pattern.finditer(clause.text) if rule.anywhere else filter(None, [pattern.match(clause.text)]):
        found = _object(language, rule, match["object"])
        # "On Fridays" at the end of what is over leaves the rest of it.
        if found is None or (ending and not language.after_ended.match(clause.text[match.end("object") :])):
            continue
        groups = {name: text or "" for name, text in match.groupdict().items() if name != "object"}
        name = rule.predicate.format(**{name: language.relation(text) for name, text in groups.items()})
        predicate = ending_of(ending, name, found) if ending else predicate_of(name, found, functional=rule.functional)
        if len(predicate.encode()) > MAX_PART_BYTES:
            continue  # no record has such a predicate, and nothing has a name of hundreds of letters
        phrase = language.ended_phrase(rule.phrase) if ending else rule.phrase
        yield ExtractedFact(
            subject_of(message.speaker),
            predicate,
            found,
            phrase.format(speaker=message.speaker, object=found, **groups),
            rule.kind,
            rule.confidence,
            message.id,
        )


def _object(language: Language, rule: ExtractionRule, text: str) -> str | None:
    """Return the object as the rule reads it, None if it is not understood."""
    text = " ".join(text.split())
    if rule.reading == "thing":
        return _bounded(language.things.thing(text))
    return _bounded((text if rule.kind == "fact" else language.things.deed(text)).strip(" ,"))


def _bounded(text: str | None) -> str | None:
    return text if text and len(text) <= MAX_OBJECT else None
