"""Rules for what somebody likes, dislikes, cannot or will not have, in German."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_GERN = (
    ("esse", "isst"), ("trinke", "trinkt"), ("lese", "liest"), ("höre", "hört"), ("schaue", "schaut"), ("spiele", "spielt"),
    ("koche", "kocht"), ("backe", "backt"), ("fahre", "fährt"), ("gehe", "geht"), ("mache", "macht"),
)  # fmt: skip
"""Verbs of what somebody likes to do: by the person, and of the person."""
_NO_AMOUNT = (
    r"(?!(?:so|mehr|wieder|genug|andere\w*|gute\w*|Ahnung|Zeit|Lust|Ding\w*|Rolle|Problem)\b)"
    r"(?!.*\b(?:oft|viel|jeden|täglich|ständig|dauernd|mehr|heute|gerade|jetzt|morgen|vor|nach)\b)"
)
"""Not followed by how much or how often: who does not eat it every day eats it."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "allergic",
        r"(?:hoch|stark |schwer )?allergisch (?:gegen|auf) (?P<object>.+)$",
        "allergic_to",
        "{speaker} ist allergisch gegen {object}",
        0.95,
        reading="thing",
        verbs="bin",
    ),
    ExtractionRule(
        "allergy",
        r"(?:eine )?(?:(?:starke|schwere|leichte) )?(?P<object>[A-ZÄÖÜ][a-zäöüß]+-?(?:[Aa]llergie|[Uu]nverträglichkeit|"
        r"[Ii]ntoleranz)|Zöliakie|Diabetes|Asthma|Epilepsie|Migräne|Bluthochdruck|Heuschnupfen)<STOP>",
        "has_condition",
        "{speaker} hat {object}",
        0.95,
        verbs="habe|hab",
    ),
    ExtractionRule(
        "condition",
        r"(?P<object>(?:laktose|gluten|histamin|fruktose)-?intolerant|Diabetiker(?:in)?|Asthmatiker(?:in)?|"
        r"Epileptiker(?:in)?|farbenblind|gehörlos|taub|blind|schwerhörig)<STOP>",
        "has_condition",
        "{speaker} ist {object}",
        0.9,
        verbs="bin",
    ),
    ExtractionRule(
        "diet",
        r"(?:mich )?(?:eine? )?(?:(?:streng|strikt|überzeugte[r]?) )?"
        r"(?P<object>vegan|vegetarisch|Veganer(?:in)?|Vegetarier(?:in)?|Pescetarier(?:in)?)<STOP>",
        "diet",
        "{speaker} ist {object}",
        0.9,
        verbs="bin|esse|lebe|ernähre",
    ),
    ExtractionRule(
        "abstains",
        rf"(?:(?:gar|überhaupt|absolut) )?(?:keine?n?|nie(?: wieder| mehr)?) {_NO_AMOUNT}(?P<object>.+)$",
        "avoids",
        "{speaker} meidet {object}",
        0.85,
        reading="thing",
        denial="required",
        verbs="esse|trinke|vertrage",
    ),
    ExtractionRule(
        "does not bear",
        r"(?P<object>(?!nicht\b).+?) nicht<STOP>",
        "avoids",
        "{speaker} verträgt {object} nicht",
        0.9,
        reading="thing",
        denial="required",
        verbs="vertrage",
    ),
    ExtractionRule(
        "takes regularly",
        r"(?:täglich|regelmäßig|morgens|abends|jeden (?:Tag|Morgen|Abend)) "
        r"(?P<object>(?:\d+ ?m[cg]?g )?[A-ZÄÖÜ][\w-]+)<END>",
        "takes",
        "{speaker} nimmt {object}",
        0.8,
        verbs="nehme",
    ),
    ExtractionRule(
        "takes",
        r"(?P<object>(?:\d+ ?m[cg]?g )?[A-ZÄÖÜ][\w-]+)(?= (?:täglich|gegen|einmal|zweimal|morgens|abends)\b)",
        "takes",
        "{speaker} nimmt {object}",
        0.8,
        verbs="nehme",
    ),
    ExtractionRule(
        "smoker",
        r"(?:eine? )?(?:starke[r]? )?(?P<object>Raucher(?:in)?)<STOP>",
        "smokes",
        "{speaker} ist {object}",
        0.85,
        verbs="bin",
    ),
    ExtractionRule(
        "favourite",
        r"<MY> (?:absolute[rs]? |neue[rs]? )?Lieblings(?P<what>[a-zäöüß]+) (?P<be>ist|sind|heißt) "
        r"(?:(?:definitiv|eindeutig|auch|immer noch|momentan|derzeit|zurzeit|ganz klar|natürlich|wohl) )*"
        r"(?P<object>(?!(?:der|die|das|dass|wenn|in|im|am|auf|von|zu|mit)\b).+)$",
        "favorite_{what}",
        "Lieblings{what} von {speaker}: {object}",
        0.9,
        functional=True,
        reading="thing",
    ),
    ExtractionRule(
        "likes",
        r"(?P<object>.+)$",
        "likes",
        "{speaker} mag {object}",
        0.85,
        reading="thing",
        verbs="mag|liebe",
    ),
    ExtractionRule(
        "fan of",
        r"(?:ein )?(?:(?:großer|riesiger|riesen|begeisterter) ?)?Fan (?:von|der|des) (?P<object>.+)$",
        "likes",
        "{speaker} mag {object}",
        0.8,
        reading="thing",
        verbs="bin",
    ),
    *(
        ExtractionRule(
            f"likes to do, {by}",
            r"(?:(?:sehr|unheimlich|besonders|auch) )*gerne? (?P<object>(?!(?:mit|in|im|am|auf|zu|zum|"
            r"zur|ins|mal|ein\w* ?mal)\b).+)$",
            "likes",
            "{speaker} " + of + " gern {object}",
            0.8,
            reading="thing",
            verbs=by,
        )
        for by, of in _GERN
    ),
    *(
        ExtractionRule(
            f"prefers to do, {by}",
            r"(?:am liebsten|lieber) (?P<object>(?!(?:mit|in|im|am|auf|zu|zum|zur|ins|mal|ein\w* ?mal|nach|später|jetzt|"
            r"heute|morgen|noch|erst|Schluss|Feierabend)\b).+)$",
            "prefers",
            "{speaker} " + of + " lieber {object}",
            0.8,
            reading="thing",
            verbs=by,
        )
        for by, of in _GERN
    ),
    ExtractionRule(
        "dislikes",
        r"(?P<object>.+)$",
        "dislikes",
        "{speaker} hasst {object}",
        0.85,
        reading="thing",
        verbs="hasse|verabscheue",
    ),
    *(
        ExtractionRule(
            name,
            pattern,
            "dislikes",
            "{speaker} mag {object} nicht",
            0.8,
            reading="thing",
            denial="required",
            verbs=verbs,
        )
        for name, verbs, pattern in (
            ("likes none", "mag|liebe", rf"(?:(?:gar|überhaupt) )?keine?n? {_NO_AMOUNT}(?P<object>.+)$"),
            (
                "does not like",
                "mag|liebe",
                r"(?P<object>(?!(?:nicht|keine?n?)\b).+?) (?:(?:gar|überhaupt|wirklich|so) )?nicht<STOP>",
            ),
            ("cannot stand", "kann", r"(?P<object>(?!nicht\b).+?) nicht (?:ausstehen|leiden)\b"),
        )
    ),
    ExtractionRule(
        "prefers",
        r"(?P<object>.+)$",
        "prefers",
        "{speaker} bevorzugt {object}",
        0.85,
        reading="thing",
        verbs="bevorzuge",
    ),
)
