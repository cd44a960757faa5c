"""How people speak about themselves in German."""

from __future__ import annotations

import re
from collections.abc import Iterator

from retain.ingest.languages.language import Ending, Expression, Speech, Things

VERBS = (
    "bin|heiße|heisse|wohne|lebe|arbeite|studiere|lerne|komme|stamme|habe|hab|mag|liebe|hasse|verabscheue|bevorzuge|esse|"
    "trinke|spiele|spreche|fahre|nehme|vertrage|rauche|besitze|leite"
)
"""Verbs of the first person that need no "ich" after "und": "ich heiße Ann und wohne in Rom"."""
_CONJUNCTION = "(?:und|aber|denn|weil|da|doch|sondern|sowie|oder|also|außerdem|obwohl|während|nur|zudem)"

SPEECH = Speech(
    personal=Expression(
        r"\b(?:ich|mein\w*|mich|mir|wir|unser\w*|bitte|immer|niemals|künftig|zukünftig|in zukunft|ab (?:jetzt|sofort)|"
        rf"von (?:jetzt|nun) an|{VERBS})\b"
    ),
    asking=Expression(
        r"(?:(?:und|aber|also|oder|ok|okay|hey|hallo|hi|na),? )*(?:wer|wen|wem|wessen|was|wann|wo|woher|wohin|warum|wieso|"
        r"weshalb|wie|welche\w*|kann|können|kannst|könnt|darf|dürfen|soll|sollen|sollte|muss|hast|hat|haben|ist|sind|bist|"
        r"seid|war|waren|willst|wollen|weißt|wissen|magst|gibt es|stimmt es)\b"
    ),
    hedged=Expression(
        r"\b(?:wenn|falls|sofern|ob|würde\w*|könnte\w*|hätte\w*|wäre\w*|sollte\w*|vielleicht|eventuell|wahrscheinlich|"
        r"vermutlich|möglicherweise|angeblich|womöglich|hoffentlich|hoff\w*|wünsch\w*|wünscht\w*|angenommen|"
        r"stell(?:en|t)? (?:dir|sie sich|euch) vor|zum beispiel|beispielsweise|z\. ?b|glaube|denke|dachte|schätze|vermute|"
        r"nehme an|scheine|witz|scherz\w*|geträumt|träum\w*|traum|als ob|rolle|figur|roman|songtext|gedicht|vorlage|"
        r"platzhalter|nicht sicher|tue so|tu so|früher|damals|einst)\b"
    ),
    reported=Expression(
        r"\b(?:sagt|sagte|sagten|sagst|gesagt|meint|meinte|erzählt\w*|fragt|fragte|gefragt|schrieb|schreibt|geschrieben|"
        r"behauptet\w*|laut|heißt es|hörte|gehört, dass|antwortet\w*|zitat|zitiert\w*|angekündigt|findet|fand)\b"
    ),
    negated=Expression(r"\b(?:nicht|nich|nie|niemals|nichts|niemand\w*|nirgends|kein\w*|weder|ohne|kaum|nee|nein)\b"),
    lead=Expression(
        r"(?:(?:hi|hallo|hey|moin|servus|grüezi|guten (?:tag|morgen|abend)|liebe[rs]? \w+|ja|jo|nein|nee|doch|ok|okay|oh|"
        r"ach|ah|so|also|und|aber|übrigens|eigentlich|ehrlich gesagt|tatsächlich|genau|klar|gut|danke|vielen dank|sorry|"
        r"entschuldigung|zur info|nur zur info|wie gesagt|wie du weißt|wie sie wissen|außerdem|zudem|"
        r"freut mich(?:, (?:dich|sie) kennenzulernen)?)\b[\s,.!:;-]*)+"
    ),
    new_subject=Expression(
        rf"(?:\s*[,;:]|\s+-)?\s+(?:{_CONJUNCTION} )*(?=(?:ich|wir|mein\w*|unser\w*|er|sie|es|du|ihr|man|das|dies|bitte|"
        rf"erinnere? mich|nenn\w* mich|in zukunft|ab (?:jetzt|sofort)|von (?:jetzt|nun) an|{VERBS})\b)"
    ),
    joined=Expression(rf"[,;:]|\s-\s|\b{_CONJUNCTION}\s*$"),
)

THINGS = Things(
    ends=(
        Expression(
            r"\s*(?:[;:()]|\s-\s|,? \b(?:weil|da|denn|aber|sondern|wenn|während|als(?! (?:kind|baby)\b)|ob|dass|"
            r"obwohl|bevor|nachdem|bis|"
            r"außer|vor allem|besonders|insbesondere|damit|danke)\b|, (?:der|die|das|den|dem|was|wo|wie)\b).*$"
        ),
        Expression(
            r"(?:,? und|,) (?=(?:ich|du|er|sie|wir|ihr|es|mein\w*|dein\w*|bin|bist|ist|sind|war|habe|hat|haben|dann|auch|"
            rf"nicht|nie|immer|{VERBS}|gehe|mache|kann|will|möchte|würde|muss)\b).*$"
        ),
        Expression(
            r"(?:,? (?:auch|sehr|so sehr|über alles|am liebsten|am meisten|am besten|besser|gerne?|total|echt|"
            r"wirklich|lieber|mehr|"
            r"in letzter zeit|zurzeit|momentan|gerade|eigentlich|übrigens|im allgemeinen|überhaupt|ehrlich gesagt|bitte|"
            r"danke|und so|oder so|immer|manchmal|ab und zu|hin und wieder|sogar|einfach|schon|halt|eben|(?:ha){2,}h?|"
            r"lol|xd))+$"
        ),
    ),
    none=Expression(
        r"(?:und|oder|aber|es|das|dies\w*|jen\w*|ihn|sie|ihm|ihr|ihnen|uns|euch|dich|dir|mich|sein\w*|dein\w*|"
        r"alles|alle|etwas|nichts|was|wie|wo|wer|wann|warum|welche\w*|beide\w*|ein(?:e|en|es)? (?:idee|weg|blick|"
        r"sache|teil|bisschen)|ja|auch|wohl|zwar|lieber|ik|niet|geen|het|"
        r"dass|zu|nur|mehr|viel|sehr|gerne?|hier|dort|so|nicht|kein\w*|davon|daran|darüber|selbst|keine ahnung|recht)\b"
    ),
    definite=Expression(
        r"(?:der|die|das|den|dem) (?!(?:meer|strand|berge?n?|natur|oper|theater|regen|schnee|ruhe|stille|sommer|winter|"
        r"herbst|frühling|sonne|see|wald|ostsee|nordsee|alpen|beatles|(?:farbe|geruch|geschmack|klang)(?= \w))\b)"
    ),
    pointing=Expression(
        r"\b(?:du|dich|dir|dein\w*|ihn|ihm|ihnen|diese\w*|jene\w*|solche\w*|ihre?[nmrs]?|mich|mir|mein\w*|hier|dort|"
        r"da|davon|dafür|damit|darin)\b|\b(?-i:Sie|Ihr|Ihre\w*|Ihnen)\b"
    ),
    unfinished=Expression(
        r"(?:^|\s)(?:zu|von|für|mit|in|an|auf|bei|und|oder|der|die|das|den|dem|ein|eine|einen|mein|meine|sehr|wie|aus|"
        r"nach|nicht|noch|sein|haben|liegen|wirken|klingen)$"
    ),
    deed_ends=Expression(r"(?:,? (?:weil|damit|denn|aber) |,? (?:bitte|danke|ok|okay)$).*$"),
)

AFTER_ENDED = Expression(
    r"\s*(?:$|[.,;:!)(]|-\s|\b(?:und|aber|seit|weil|da|denn|sondern|mehr|nach|wegen|jetzt|heute|gestern|letzte\w*|"
    r"diese\w*|vor|im)\b)"
)
"""What may follow the object of a fact that is over."""

_STOPPED = (
    Expression(
        rf"(?P<subject>ich (?:{VERBS})) (?P<between>(?:[^\s,;]+ ){{0,4}}?)(?:nicht|nich) (?:mehr|"
        rf"länger)\b(?! als\b)(?P<rest>.*)$"
    ),
    Expression(
        rf"(?P<subject>ich (?:{VERBS})) (?P<between>(?:[^\s,;]+ ){{0,2}}?)kein(?P<case>e[nrs]?)? (?P<rest>[^,;]+?) "
        rf"mehr\b(?! als\b)(?P<end>.*)$"
    ),
)
_DENIED = (
    Expression(
        rf"(?P<subject>ich (?:{VERBS})) (?P<between>)(?:nicht|nich) (?!(?:nur|bloß|immer|ganz|wirklich|unbedingt|"
        rf"sicher|so|sehr|gerade|besonders|viel|oft|einmal|mal|mehr)\b)(?P<rest>.+)$"
    ),
    Expression(rf"(?P<subject>ich (?:{VERBS})) (?P<between>)kein(?P<case>e[nrs]?)? (?P<rest>.+)$"),
)
_STILL = Expression(r"\b(?:noch|wieder|immer noch)\b")
_VERB = re.compile(r"^(?:\{speaker\}|.+? von \{speaker\}) \w+")


def endings(clause: str, _sentence: str) -> Iterator[Ending]:
    """Yield what a clause ends or denies: "Ich wohne nicht mehr in Rom", "Ich bin kein Vegetarier"."""
    for kind, patterns in (("ended", _STOPPED), ("denied", _DENIED)):
        for pattern in patterns:
            match = pattern.match(clause)
            if match is not None and not _STILL.search(clause):
                yield Ending(_positive(match), "ended" if kind == "ended" else "denied")
                return


def _positive(match: re.Match[str]) -> str:
    groups = match.groupdict()
    has_one = "case" in groups and groups["subject"].casefold().endswith(("bin", "hab", "habe", "besitze"))
    article = f"ein{groups['case'] or ''}" if has_one else ""
    if match["rest"].strip() == "" and groups["subject"].casefold() == "ich rauche":
        return "ich bin Raucher"
    parts = (groups["subject"], groups["between"], article, groups["rest"], groups.get("end") or "")
    return " ".join(" ".join(part.strip() for part in parts if part.strip()).split())


def ended_phrase(phrase: str) -> str:
    """Return the sentence for a fact that has ended, from a rule's for one that holds."""
    ended, found = _VERB.subn(r"\g<0> nicht mehr", phrase, count=1)
    return ended if found else f"{phrase} (nicht mehr)"
