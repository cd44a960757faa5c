"""Rules for what somebody has to do, plans to do, and wants done, in French."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_NAMED = r"(?!.*\b(?:le faire|la faire|l'appeler|ça|cela|(?<!-)vous|te|toi|lui|leur|cet|cette|ces)\b)"
"""Not followed by who or what only the conversation names."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "remind me",
        r"<PLEASE>(?:[Rr]appelle|[Rr]appelez)-moi (?P<object>.*\b(?:de |d').+)$",
        "task",
        "{speaker} demande un rappel : {object}",
        0.9,
        whole=True,
    ),
    ExtractionRule(
        "has to",
        rf"<I>dois (?P<object>(?=.*<DUE>){_NAMED}(?!être|avoir|dire|admettre|avouer)[a-zà-ÿ].+)$",
        "task",
        "{speaker} doit {object}",
        0.8,
    ),
    ExtractionRule(
        "appointment",
        rf"(?:<J>ai|[Nn]ous avons) (?P<object>(?=.*<DUE>){_NAMED}(?:un |une |mon |ma )?(?:[a-zà-ÿ]+ )?(?:rendez-vous|"
        rf"rdv|réunion|examen|entretien|vol|opération|mariage|consultation)\b.+)$",
        "plans",
        "{speaker} a {object}",
        0.8,
    ),
    ExtractionRule(
        "plans",
        r"<I>(?:pars|vais|déménage|m'envole) (?P<object>(?=.*(?:<DUE>|\b(?:la semaine|le mois|l'année|l'été|cet été|"
        r"en (?:janvier|février|"
        r"mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre))))(?:(?:demain|lundi|mardi|mercredi|"
        r"jeudi|vendredi|samedi|dimanche|la semaine prochaine),? )?(?:à|en|au|aux|pour) <PLACE>.*)$",
        "plans",
        "{speaker} prévoit de partir {object}",
        0.8,
    ),
    ExtractionRule(
        "from now on",
        r"<PLEASE>(?:[Dd]orénavant|[Dd]ésormais|[Àà] l'avenir|[Àà] partir de maintenant),? (?P<object>(?:<DO>\b|"
        r"n(?:e |')(?=<DO>\b)|toujours (?:me |nous )?\w+(?:er|ir|re)\b).+)$",
        "instruction",
        "Consigne de {speaker} : désormais, {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "always, never",
        r"<PLEASE>(?P<object>(?:[Nn]e |[Nn]')?<DO>\b(?:-(?:moi|nous|le|la|les))? <EVER>\b.+)$",
        "instruction",
        "Consigne de {speaker} : {object}",
        0.8,
        denial="either",
        whole=True,
    ),
    ExtractionRule(
        "address me",
        r"<PLEASE>(?P<object>(?:[Tt]utoie|[Tt]utoyez|[Vv]ouvoie|[Vv]ouvoyez)-moi)\b",
        "instruction",
        "Consigne de {speaker} : {object}",
        0.85,
        whole=True,
    ),
)
