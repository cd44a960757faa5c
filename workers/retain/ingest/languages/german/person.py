"""Rules for who somebody is in German: names, places, days, contact details, work, people."""

from __future__ import annotations

from retain.ingest.languages.german.vocabulary import said_by
from retain.ingest.languages.rule import ExtractionRule

_BIN = said_by("bin")
_HABE = said_by("habe|hab")
_WE_HAVE = said_by("haben|habe|hab", "(?:ich|wir)")
_WE_ARE = said_by("sind|bin", "(?:ich|wir)")
_BORN = said_by("bin|wurde")
_KIN = (("WOMAN", "eine"), ("MAN", "einen"), ("IT", "ein"))
"""Words for people and animals of somebody, and their article."""
_NAMED = (
    ("named relation", r"(?: heißt| heisst|s Name ist),? (?P<object><FIRST>)", 0.95),
    (
        "relation",
        r",? (?P<object>(?!<JOB>|<PURSUIT>)<FIRST>)(?=$|[,.;)]| (?:und|geht|kommt|wohnt|lebt|arbeitet)\b)",
        0.8,
    ),
)

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "name",
        rf"(?:<MY> (?:voller |richtiger )?Name (?:ist|lautet) |{said_by('heiße|heisse')})(?P<object><NAME>)<END>",
        "name",
        "{speaker} heißt {object}",
        0.95,
    ),
    ExtractionRule(
        "call me",
        r"(?:<PLEASE>[Nn]enn(?:t|en Sie)? mich(?: bitte)?|(?:[Aa]lle|"
        r"[Mm]eine Freunde) nennen mich) (?P<object><NAME>)<STOP>",
        "preferred_name",
        "{speaker} wird {object} genannt",
        0.9,
    ),
    ExtractionRule(
        "age",
        rf"{_BIN}(?:erst )?(?P<object>\d{{1,3}}(?= Jahre alt)|(?:1[3-9]|[2-9]\d)<STOP>)",
        "age",
        "{speaker} ist {object} Jahre alt",
        0.8,
        lasting=True,
    ),
    ExtractionRule(
        "lives in",
        rf"{said_by('wohne|wohnen|lebe|leben', '(?:ich|wir)')}(?:(?:zusammen )?(?:mit|bei) [\w ]{{1,30}}? )?(?:in|"
        rf"im) (?P<object><PLACE>)<END>",
        "lives_in",
        "{speaker} wohnt in {object}",
        0.9,
    ),
    ExtractionRule(
        "moved to",
        rf"{_WE_ARE}(?:(?:kürzlich|neulich|frisch|endlich|letzte\w* \w+|vor \w+ \w+) )?(?:von <PLACE> )?"
        r"(?:nach|in) (?P<object><PLACE>) (?:um)?gezogen\b",
        "lives_in",
        "{speaker} wohnt in {object}",
        0.85,
    ),
    ExtractionRule(
        "comes from",
        rf"{said_by('komme|stamme')}(?:ursprünglich )?aus (?P<object><PLACE>)<STOP>",
        "comes_from",
        "{speaker} kommt aus {object}",
        0.8,
        lasting=True,
    ),
    ExtractionRule(
        "grew up in",
        rf"{_WE_ARE}in (?P<object><PLACE>) (?:geboren und )?aufgewachsen\b",
        "grew_up_in",
        "{speaker} ist in {object} aufgewachsen",
        0.85,
        lasting=True,
    ),
    ExtractionRule(
        "born in a place",
        rf"{_BORN}(?:(?:am <DATE>|im Jahr \d{{4}}|\d{{4}}) )?in (?P<object><PLACE>) geboren\b",
        "born_in",
        "{speaker} ist in {object} geboren",
        0.9,
        lasting=True,
    ),
    ExtractionRule(
        "birthday",
        rf"(?:<MY> Geburtstag ist (?:am )?|{_BORN}am (?=<DATE> (?:in <PLACE> )?geboren)|{_HABE}am (?=<DATE> Geburtstag))"
        r"(?P<object><DATE>)",
        "birthday",
        "{speaker} hat am {object} Geburtstag",
        0.95,
        lasting=True,
    ),
    ExtractionRule(
        "e-mail",
        r"(?:<MY> (?:(?:neue|private|aktuelle) )?(?:E-?)?[Mm]ail(?:-?[Aa]dresse)? (?:ist|lautet|:)|"
        r"<PLEASE>[Ss]chreib(?:en Sie)? mir (?:bitte )?(?:an|unter)):? (?P<object><EMAIL>)",
        "email",
        "Die E-Mail-Adresse von {speaker} ist {object}",
        0.95,
    ),
    ExtractionRule(
        "phone",
        r"(?:<MY> (?:(?:neue|private|aktuelle) )?(?:Handy|Telefon|Mobil|Festnetz)?-?[Nn]ummer (?:ist|lautet|:)|"
        r"(?:[Ii]ch bin|[Dd]u erreichst mich|[Ss]ie erreichen mich) unter(?: der(?: Nummer)?)?):? (?P<object><PHONE>)",
        "phone",
        "Die Telefonnummer von {speaker} ist {object}",
        0.9,
    ),
    ExtractionRule(
        "address",
        r"<MY> (?:neue )?(?:Post|Liefer|Privat)?(?:anschrift|adresse|Anschrift|Adresse) (?:ist|lautet)(?: die)?:? "
        r"(?P<object>(?=.*\d)(?!.*@)[A-ZÄÖÜ].{5,120})$",
        "address",
        "Die Adresse von {speaker} ist {object}",
        0.85,
    ),
    ExtractionRule(
        "works at",
        rf"{said_by('arbeite')}(?:als [\w-]+ )?(?:bei|für) (?P<object>(?:der |dem )?<ORG>)<END>",
        "works_at",
        "{speaker} arbeitet bei {object}",
        0.85,
    ),
    ExtractionRule(
        "workplace",
        rf"{said_by('arbeite')}(?P<prep>in|an|bei) (?P<object>eine[mr] (?:[a-zäöüß]+ ){{0,2}}<WORKPLACE>)<END>",
        "works_at",
        "{speaker} arbeitet {prep} {object}",
        0.8,
    ),
    ExtractionRule(
        "works as",
        rf"{said_by('arbeite|jobbe')}als (?P<object>(?:(?!Kind|Team|Student)[a-zäöü][\w-]* ){{0,2}}[A-ZÄÖÜ][\w-]+)<END>",
        "works_as",
        "{speaker} arbeitet als {object}",
        0.9,
    ),
    ExtractionRule(
        "job",
        rf"{_BIN}(?:eine? )?(?:von Beruf |gelernte[r]? |(?:selbständige|selbstständige|freiberufliche|freie)[r]? )?"
        r"(?P<object><JOB>)(?:<END>|(?= von Beruf\b))",
        "works_as",
        "{speaker} arbeitet als {object}",
        0.85,
    ),
    ExtractionRule("pursuit", rf"{_BIN}(?P<object><PURSUIT>)<END>", "is", "{speaker} ist {object}", 0.85),
    ExtractionRule(
        "studies",
        rf"{said_by('studiere')}(?P<object>(?!<LANGUAGE>e\b)[A-ZÄÖÜ][\wäöüß-]+(?:(?: und|"
        rf",) [A-ZÄÖÜ][\w-]+)*(?: auf Lehramt)?)<END>",
        "studies",
        "{speaker} studiert {object}",
        0.85,
    ),
    ExtractionRule(
        "speaks",
        rf"{said_by('spreche')}(?:(?:fließend|gut|sehr gut|etwas|ein bisschen|ein wenig|nur) )?"
        r"(?P<object><LANGUAGE>(?:(?:,? und|,) <LANGUAGE>)*)(?: (?:fließend|gut))?<END>",
        "speaks",
        "{speaker} spricht {object}",
        0.9,
    ),
    ExtractionRule(
        "learns",
        rf"{said_by('lerne')}(?P<object>(?:<LANGUAGE>|<PLAYED>)(?:(?:,? und|,) (?:<LANGUAGE>|<PLAYED>))*)<END>",
        "learns",
        "{speaker} lernt {object}",
        0.85,
    ),
    ExtractionRule(
        "plays",
        rf"{said_by('spiele')}(?:gerne? )?(?P<object><PLAYED>(?:(?:,? und|,) <PLAYED>)*)<END>",
        "plays",
        "{speaker} spielt {object}",
        0.85,
    ),
    ExtractionRule(
        "marital status",
        rf"{_BIN}(?:(?:glücklich|frisch|noch|wieder) )?(?P<object>(?:verheiratet|ledig|geschieden|verwitwet|verlobt|"
        rf"Single)<STOP>)",
        "marital_status",
        "{speaker} ist {object}",
        0.85,
    ),
    *(
        ExtractionRule(
            f"{name}, {article}",
            rf"\b<MY> <AGED>(?P<relation><{part}>){pattern}",
            "has_{relation}",
            "{speaker} hat " + article + " {relation} namens {object}",
            confidence,
            anywhere=True,
        )
        for part, article in _KIN
        for name, pattern, confidence in _NAMED
    ),
    ExtractionRule(
        "job of a relation",
        r"<MY> <AGED>(?P<relation><WOMAN>|<MAN>)(?:,? <FIRST>,?)? (?:ist|arbeitet als) (?P<object><JOB>|<PURSUIT>)<END>",
        "{relation}_works_as",
        "{relation} von {speaker}: {object}",
        0.8,
    ),
    ExtractionRule(
        "has some",
        rf"{_WE_HAVE}(?P<object>(?:eine?n?|zwei|drei|vier|fünf|sechs|sieben|"
        rf"\d{{1,2}}) (?:[a-zäöüß]+ ){{0,2}}?<COUNTED>)<STOP>",
        "has",
        "{speaker} hat {object}",
        0.85,
    ),
)
