"""Rules for who somebody is in German: names, places, days, contact details, work, people."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_KIN = (("WOMAN", "eine"), ("MAN", "einen"), ("IT", "ein"))
"""Words for people and animals of somebody, and their article."""
_NAMED = (
    ("named relation", r"(?: heißt| heisst|s Name ist),? (?P<object><FIRST>)", 0.95),
    ("relation", r" (?P<object><FIRST>)(?=$|[,.;)]| (?:und|geht|kommt|wohnt|lebt|arbeitet)\b)", 0.8),
)

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "name",
        r"<MY> (?:voller |richtiger )?Name (?:ist|lautet) (?P<object><NAME>)<END>",
        "name",
        "{speaker} heißt {object}",
        0.95,
    ),
    ExtractionRule(
        "is called", r"(?P<object><NAME>)<END>", "name", "{speaker} heißt {object}", 0.95, verbs="heiße|heisse"
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
        r"(?:erst )?(?P<object>\d{1,3}(?= Jahre alt)|(?:1[3-9]|[2-9]\d)<STOP>)",
        "age",
        "{speaker} ist {object} Jahre alt",
        0.8,
        verbs="bin",
    ),
    ExtractionRule(
        "lives in",
        r"(?:(?:zusammen )?(?:mit|bei) [\w ]{1,30}? )?(?:in|im) (?P<object><PLACE>)<END>",
        "lives_in",
        "{speaker} wohnt in {object}",
        0.9,
        verbs="wohne|wohnen|lebe|leben",
    ),
    ExtractionRule(
        "moved to",
        r"(?:(?:kürzlich|neulich|frisch|endlich|letzte\w* \w+|vor \w+ \w+) )?(?:von <PLACE> )?"
        r"(?:nach|in) (?!Hause\b)(?P<object><PLACE>) (?:um)?gezogen\b",
        "lives_in",
        "{speaker} wohnt in {object}",
        0.85,
        verbs="bin|sind",
    ),
    ExtractionRule(
        "comes from",
        r"(?:ursprünglich )?(?<!gerade )(?<!jetzt )(?<!nun )aus (?P<object><PLACE>)<STOP>",
        "comes_from",
        "{speaker} kommt aus {object}",
        0.8,
        verbs="komme|stamme",
    ),
    ExtractionRule(
        "grew up in",
        r"in (?P<object><PLACE>) (?:geboren und )?aufgewachsen\b",
        "grew_up_in",
        "{speaker} ist in {object} aufgewachsen",
        0.85,
        verbs="bin|sind",
    ),
    ExtractionRule(
        "born in a place",
        r"(?:(?:am <DATE>|im Jahr \d{4}|\d{4}) )?in (?P<object><PLACE>) geboren\b",
        "born_in",
        "{speaker} ist in {object} geboren",
        0.9,
        verbs="bin|wurde",
    ),
    ExtractionRule(
        "birthday",
        r"<MY> Geburtstag ist (?:am )?(?P<object><DATE>)",
        "birthday",
        "{speaker} hat am {object} Geburtstag",
        0.95,
    ),
    ExtractionRule(
        "born on a day",
        r"am (?P<object><DATE>)(?= (?:in <PLACE> )?geboren\b| Geburtstag\b)",
        "birthday",
        "{speaker} hat am {object} Geburtstag",
        0.95,
        verbs="bin|wurde|habe|hab",
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
        r"(?:als [\w-]+ )?(?:bei|für) (?P<object>(?:der |dem )?<ORG>)<END>",
        "works_at",
        "{speaker} arbeitet bei {object}",
        0.85,
        verbs="arbeite",
    ),
    ExtractionRule(
        "workplace",
        r"(?P<prep>in|an|bei) (?P<object>eine[mr] (?:[a-zäöüß]+ ){0,2}<WORKPLACE>)<END>",
        "works_at",
        "{speaker} arbeitet {prep} {object}",
        0.8,
        verbs="arbeite",
    ),
    ExtractionRule(
        "works as",
        r"als (?P<object>(?:[a-zäöü][\w-]* ){0,2}(?!(?:Kind|Team|Student(?:in)?|Erste[rs]?|Letzte[rs]?|Nächste[rs]?)\b)"
        r"[A-ZÄÖÜ][\w-]+)<END>",
        "works_as",
        "{speaker} arbeitet als {object}",
        0.9,
        verbs="arbeite|jobbe",
    ),
    ExtractionRule(
        "job",
        r"(?:eine? )?(?:von Beruf |gelernte[r]? |(?:selbständige|selbstständige|freiberufliche|freie)[r]? )?"
        r"(?P<object><JOB>)(?:<END>|(?= von Beruf\b))",
        "works_as",
        "{speaker} arbeitet als {object}",
        0.85,
        verbs="bin",
    ),
    ExtractionRule(
        "pursuit",
        r"(?P<object><PURSUIT>)<END>",
        "is",
        "{speaker} ist {object}",
        0.85,
        verbs="bin",
    ),
    ExtractionRule(
        "studies",
        r"(?P<object>(?!(?:<LANGUAGE>e|Tag|Nacht|Vollzeit|Teilzeit)\b)[A-ZÄÖÜ][\wäöüß-]+(?:(?: und|"
        r",) [A-ZÄÖÜ][\w-]+)*(?: auf Lehramt)?)<END>",
        "studies",
        "{speaker} studiert {object}",
        0.85,
        verbs="studiere",
    ),
    ExtractionRule(
        "speaks",
        r"(?:(?:fließend|gut|sehr gut|etwas|ein bisschen|ein wenig|nur) )?"
        r"(?P<object><LANGUAGE>(?:(?:,? und|,) <LANGUAGE>)*)(?: (?:fließend|gut))?<END>",
        "speaks",
        "{speaker} spricht {object}",
        0.9,
        verbs="spreche",
    ),
    ExtractionRule(
        "learns",
        r"(?P<object>(?:<LANGUAGE>|<PLAYED>)(?:(?:,? und|,) (?:<LANGUAGE>|<PLAYED>))*)<END>",
        "learns",
        "{speaker} lernt {object}",
        0.85,
        verbs="lerne",
    ),
    ExtractionRule(
        "plays",
        r"(?:gerne? )?(?<!gerade )(?<!jetzt )(?P<object><PLAYED>(?:(?:,? und|,) <PLAYED>)*)<END>",
        "plays",
        "{speaker} spielt {object}",
        0.85,
        verbs="spiele",
    ),
    ExtractionRule(
        "marital status",
        r"(?:(?:glücklich|frisch|noch|wieder) )?(?P<object>(?:verheiratet|ledig|geschieden|verwitwet|verlobt|Single)<STOP>)",
        "marital_status",
        "{speaker} ist {object}",
        0.85,
        verbs="bin",
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
        r"(?P<object>(?:ein(?:en)?|eine(?= (?:[a-zäöüß]+ )*(?:Hündin|Katze|Tochter|Schwester|Enkelin|Nichte)\b)|"
        r"zwei|drei|vier|fünf|sechs|sieben|\d{1,2}) (?:[a-zäöüß]+ ){0,2}?<COUNTED>)<STOP>",
        "has",
        "{speaker} hat {object}",
        0.85,
        verbs="habe|hab|haben",
    ),
)
