"""Rules for what somebody likes, dislikes, cannot or will not have, in French."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_ART = r"(?P<art>(?:le |la |les |l'|du |de la |de l'|des |un |une )?)"
_NO_AMOUNT = (
    r"(?!(?:beaucoup|trop|assez|tant|autant|souvent|ça|cela)\b)(?!.*\b(?:souvent|tous les jours|tout le temps|chaque|"
    r"aujourd'hui|ce soir|ce matin|maintenant|après|avant|demain)\b)"
)
"""Not followed by how much or how often: who does not eat it every day eats it."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "allergic",
        r"<IM>(?:très |fortement |gravement |aussi )*allergique (?P<art>(?:à la |à l'|aux? |à ))(?P<object>.+)$",
        "allergic_to",
        "{speaker} est allergique {art}{object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "allergy",
        r"<J>ai une (?:forte |grave |légère )?allergie (?P<art>(?:à la |à l'|aux? |à ))(?P<object>.+)$",
        "allergic_to",
        "{speaker} est allergique {art}{object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "condition",
        r"<IM>(?P<object>intolérante? (?:au lactose|au gluten|au fructose|à l'histamine)|diabétique|asthmatique|épileptique|"
        r"daltonien(?:ne)?|sourde?|malentendante?|aveugle|cœliaque|coeliaque)<STOP>",
        "has_condition",
        "{speaker} est {object}",
        0.9,
    ),
    ExtractionRule(
        "has a condition",
        r"<J>ai (?P<object>(?:du diabète|de l'asthme|de l'épilepsie|de l'hypertension|la maladie cœliaque|"
        r"le diabète))<STOP>",
        "has_condition",
        "{speaker} a {object}",
        0.9,
    ),
    ExtractionRule(
        "diet",
        r"<IM><ADV>(?:une? )?(?:strictement )?(?P<object>végétarien(?:ne)?|végane?|vegan|végétalien(?:ne)?|"
        r"pesc[éo]-?(?:tarien(?:ne)?|végétarien(?:ne)?))<STOP>",
        "diet",
        "{speaker} est {object}",
        0.9,
    ),
    *(
        ExtractionRule(
            f"abstains, {by}",
            rf"<I>ne {by} (?:pas|jamais|plus) (?P<art>(?:de |d'|du |de la |de l'|des )){_NO_AMOUNT}(?P<object>.+)$",
            "avoids",
            "{speaker} ne " + of + " pas {art}{object}",
            0.85,
            reading="thing",
            denial="required",
        )
        for by, of in (("mange", "mange"), ("bois", "boit"))
    ),
    ExtractionRule(
        "takes",
        r"<I>prends (?:(?P<dose>\d+ ?m[cg]?g) (?:de |d'))?(?:du |de la |de l'|un |une )?"
        r"(?P<object>(?!rendez-vous\b)[A-Za-zÀ-ÿ][\w-]+)"
        r"(?= (?:tous les (?:jours|matins|soirs)|chaque|quotidiennement|contre|une fois par|deux fois par)\b)",
        "takes",
        "{speaker} prend {object}",
        0.8,
    ),
    ExtractionRule(
        "smoker",
        r"<IM>(?:une? )?(?:(?:gros|grosse) )?(?P<object>fumeur|fumeuse)<STOP>",
        "smokes",
        "{speaker} est {object}",
        0.85,
    ),
    *(
        ExtractionRule(
            f"favourite, {name}",
            rf"<MY> {words} (?P<be>est|sont) (?:(?:définitivement|certainement|aussi|toujours|encore|probablement) )*{_ART}"
            r"(?P<object>(?!(?:de|d'|quand|que|à|en|dans|probablement|aussi|bien|très|plus)\b).+)$",
            "favorite_{what}",
            phrase,
            0.9,
            functional=True,
            reading="thing",
        )
        for name, words, phrase in (
            (
                "after",
                r"(?P<what>[a-zà-ÿœ]+) (?P<favourite>préférée?s?|favorite?s?)",
                "{what} {favourite} de {speaker} : {art}{object}",
            ),
            (
                "before",
                r"(?P<favourite>préférée?s?) (?P<what>[a-zà-ÿœ]+)",
                "{what} {favourite} de {speaker} : {art}{object}",
            ),
        )
    ),
    ExtractionRule(
        "likes",
        rf"(?:<J>|[Jj]e )<ADV>(?:aime|adore|apprécie) <ADV>(?!(?:mieux|moins|plus|pas)\b){_ART}(?P<object>.+)$",
        "likes",
        "{speaker} aime {art}{object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "fan of",
        r"<IM><ADV>(?:une? )?(?:(?:grande?|vraie?|énorme|gros) )?(?:fan|amateur|amatrice|passionnée?|mordue?) "
        r"(?P<art>(?:de la |de l'|de |d'|du |des |par la |par le |par l'|par les ))(?P<object>.+)$",
        "likes",
        "{speaker} aime : {object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "dislikes",
        rf"<I><ADV>(?:déteste|hais) <ADV>{_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} déteste {art}{object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "does not like",
        rf"<I>n'aime (?:vraiment )?(?:pas|plus) (?:(?:du tout|vraiment|trop|beaucoup|tellement) )?{_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} n'aime pas {art}{object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "cannot stand",
        rf"<I>ne supporte (?:vraiment )?pas {_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} ne supporte pas {art}{object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "prefers",
        rf"<I><ADV>préfère <ADV>(?!.*\b(?:demain|aujourd'hui|maintenant|plus tard|ce soir)\b)"
        rf"{_ART}(?P<object>.+?)(?: (?:à|au|aux) .*)?$",
        "prefers",
        "{speaker} préfère {art}{object}",
        0.85,
        reading="thing",
    ),
)
