"""Rules for who somebody is in French: names, places, days, contact details, work, people."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_IN = r"(?P<prep>à|en|au|aux|dans) (?P<object><PLACE>)"
_OF = r"(?P<of>de |d'|du |des )(?P<object><PLACE>)"
_KIN = (("WOMAN", "une"), ("MAN", "un"))
"""Words for people and animals of somebody, and their article."""
_NAMED = (
    ("named relation", r",? (?:s'appelle|se nomme|se prénomme) (?P<object><FIRST>)", 0.95),
    ("relation", r" (?P<object><FIRST>)", 0.85),
)

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "name",
        r"(?:<MY> (?:vrai )?(?:nom|prénom) (?:est|c'est) |<I>m'appelle )(?P<object><NAME>)<END>",
        "name",
        "{speaker} s'appelle {object}",
        0.95,
    ),
    ExtractionRule(
        "call me",
        r"(?:<PLEASE>(?:[Aa]ppelle|[Aa]ppelez|[Aa]ppeler)(?:-| )moi|(?:[Tt]out le monde|[Oo]n|[Mm]es amis) m'appellent?) "
        r"(?P<object>(?!(?:Demain|Vite|Maintenant|Quand|Plus|Après)\b)<NAME>)<STOP>",
        "preferred_name",
        "{speaker} se fait appeler {object}",
        0.9,
    ),
    ExtractionRule(
        "age",
        r"<J>ai (?:maintenant |déjà |juste )?(?P<object>\d{1,3}) ans\b(?! (?:d'|de\b))",
        "age",
        "{speaker} a {object} ans",
        0.85,
    ),
    ExtractionRule(
        "lives in",
        rf"(?:<J>habite|<I>vis|<I>réside|[Nn]ous (?:habitons|vivons)) <ADV>{_IN}<END>",
        "lives_in",
        "{speaker} habite {prep} {object}",
        0.9,
    ),
    ExtractionRule(
        "lives in, without a preposition",
        r"(?:<J>habite|[Nn]ous habitons) <ADV>(?P<object>(?!Rue\b|Chez\b)<PLACE>)<END>",
        "lives_in",
        "{speaker} habite {object}",
        0.85,
    ),
    ExtractionRule(
        "moved to",
        r"(?:<J>ai (?:récemment |enfin |juste )?(?:déménagé|emménagé)|<I>me suis (?:installée?|établie?)|"
        rf"<I>viens (?:de déménager|d'emménager|de m'installer)|[Nn]ous avons (?:déménagé|emménagé)) {_IN}<STOP>",
        "lives_in",
        "{speaker} habite {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "comes from",
        rf"(?:<I>viens |<IM>originaire )<ADV>{_OF}<STOP>",
        "comes_from",
        "{speaker} vient {of}{object}",
        0.8,
    ),
    ExtractionRule(
        "grew up in",
        rf"<J>ai grandi {_IN}<END>",
        "grew_up_in",
        "{speaker} a grandi {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "born in a place",
        rf"<IM>née? (?:(?:le )?<DATE> |en \d{{4}} )?{_IN}<END>",
        "born_in",
        "{speaker} est né(e) {prep} {object}",
        0.9,
    ),
    ExtractionRule(
        "birthday",
        r"(?:<MY> anniversaire(?: est|, c'est|, est) |<IM>née? )(?P<object><DATE>)",
        "birthday",
        "L'anniversaire de {speaker} est {object}",
        0.95,
    ),
    ExtractionRule(
        "birth year",
        r"<IM>née? en (?P<object>(?:19|20)\d\d)\b",
        "birth_year",
        "L'année de naissance de {speaker} est {object}",
        0.95,
    ),
    ExtractionRule(
        "e-mail",
        r"(?:<MY> (?:(?:nouvelle|nouveau) )?(?:adresse )?(?:e-?mail|mail|courriel|adresse)(?: personnelle?)? (?:est|"
        r"c'est|:)|<PLEASE>(?:[ÉéEe]cris|[ÉéEe]crivez|[Cc]ontacte|[Cc]ontactez)-moi (?:à|au|sur)):? (?P<object><EMAIL>)",
        "email",
        "L'adresse e-mail de {speaker} est {object}",
        0.95,
    ),
    ExtractionRule(
        "phone",
        r"(?:<MY> (?:nouveau )?(?:numéro|téléphone|portable|mobile)(?: de (?:téléphone|portable|mobile))? (?:est|"
        r"c'est)(?: le)?|<PLEASE>(?:[Aa]ppelle|[Aa]ppelez)-moi au):? (?P<object><PHONE>)",
        "phone",
        "Le numéro de téléphone de {speaker} est {object}",
        0.9,
    ),
    ExtractionRule(
        "address",
        r"(?:<MY> (?:nouvelle )?adresse (?:postale )?(?:est|c'est)|"
        r"<J>habite au):? (?P<object>(?:le )?(?=.*\d)(?!.*@)[\dA-Z].{5,120})$",
        "address",
        "L'adresse de {speaker} est {object}",
        0.85,
    ),
    ExtractionRule(
        "works at",
        r"<I>(?:travaille|bosse) <ADV>(?:comme [\w-]+ )?(?P<prep>chez|pour|à) (?P<object>(?!Noël\b)<ORG>)<END>",
        "works_at",
        "{speaker} travaille {prep} {object}",
        0.85,
    ),
    ExtractionRule(
        "workplace",
        r"<I>travaille <ADV>(?P<prep>dans|à|pour|chez) (?P<object>une? (?:(?:petite?|grande?|jeune) )?<WORKPLACE>)<END>",
        "works_at",
        "{speaker} travaille {prep} {object}",
        0.8,
    ),
    ExtractionRule(
        "works as",
        r"<I>(?:travaille|bosse) <ADV>(?:comme|en tant que|en tant qu'|en qualité de) ?"
        r"(?P<object>(?!(?:ça|prévu|un|une|je|si|tout|toi|vous|tu|d'habitude)\b)[a-zà-ÿ][\w'-]*(?: (?:de |du |d')?(?!(?:et|"
        r"mais|dans|pour|chez|à|en|au|depuis|la|le|qui|lol|haha|mdr)\b)[a-zà-ÿ][\w'-]*){0,2})<END>",
        "works_as",
        "{speaker} travaille comme {object}",
        0.85,
    ),
    ExtractionRule(
        "job",
        r"<IM><ADV>(?:une? )?(?P<object><JOB>)(?:<END>|(?= (?:de métier|de profession|spécialisée?)\b))",
        "works_as",
        "{speaker} travaille comme {object}",
        0.85,
    ),
    ExtractionRule("pursuit", r"<IM><ADV>(?:une? )?(?P<object><PURSUIT>)<END>", "is", "{speaker} est {object}", 0.85),
    ExtractionRule(
        "studies",
        r"(?:<J>étudie <ADV>|<I>fais (?:des|mes) études (?:de |d'|en )|<IM>étudiante? en )(?P<art>le |la |l'|les )?"
        r"(?P<object>(?!(?:à|au|aux|dans|pour|en|beaucoup|dur|avec|chez|mon|ma|mes|toujours|encore|ici|ensuite|tout|"
        r"très|sur|depuis)\b)[a-zà-ÿ][\w-]+(?: (?:des |de |du |et (?:la |l'|le |les ))(?:la |l')?[a-zà-ÿ][\w-]+|"
        r" (?!(?:à|au|aux|dans|pour|en|et|mais|depuis|avec|chez|de|ensuite|toujours|aussi)\b)[a-zà-ÿ]+)?)<END>",
        "studies",
        "{speaker} étudie {art}{object}",
        0.85,
    ),
    ExtractionRule(
        "speaks",
        r"<I>parle <ADV>(?:(?:couramment|un peu|bien) )?(?P<object><LANGUAGE>(?:(?:,? et|"
        r",) <LANGUAGE>)*)(?: couramment)?<END>",
        "speaks",
        "{speaker} parle {object}",
        0.9,
    ),
    ExtractionRule(
        "learns",
        r"<J>apprends <ADV>(?:à (?:parler|jouer) )?(?P<object>(?:<LANGUAGE>|<PLAYED>)(?:(?:,? et|,) (?:<LANGUAGE>|"
        r"<PLAYED>))*)<END>",
        "learns",
        "{speaker} apprend {object}",
        0.85,
    ),
    ExtractionRule(
        "plays",
        r"<I>(?:joue|fais) <ADV>(?P<art>(?:du |de la |de l'|au |aux |à la |à l'))(?P<object><PLAYED>)<END>",
        "plays",
        "{speaker} joue {art}{object}",
        0.85,
    ),
    ExtractionRule(
        "marital status",
        r"<IM>(?:(?:maintenant|heureusement|encore|toujours|récemment) )?"
        r"(?P<object>(?:mariée?|célibataire|divorcée?|veuf|veuve|fiancée?|pacsée?)<STOP>)",
        "marital_status",
        "{speaker} est {object}",
        0.85,
    ),
    *(
        ExtractionRule(
            f"{name}, {article}",
            rf"\b<MY> <AGED>(?P<relation><{part}>){pattern}",
            "has_{relation}",
            "{speaker} a " + article + " {relation} qui s'appelle {object}",
            confidence,
            anywhere=True,
        )
        for part, article in _KIN
        for name, pattern, confidence in _NAMED
    ),
    ExtractionRule(
        "job of a relation",
        r"<MY> <AGED>(?P<relation><WOMAN>|<MAN>)(?:,? <FIRST>,?)? (?:est|travaille comme) (?:une? )?(?P<object><JOB>|"
        r"<PURSUIT>)<END>",
        "{relation}_works_as",
        "{relation} de {speaker} : {object}",
        0.8,
    ),
    ExtractionRule(
        "has some",
        r"(?:<J>ai <ADV>|[Nn]ous avons <ADV>)(?P<object>(?:une?|deux|trois|quatre|cinq|six|sept|\d{1,2}) "
        r"(?:(?:petite?s?|grande?s?|jeunes?|belles?|beaux|vieux|vieille) )?<COUNTED>)(?:<STOP>|(?= (?:adorables?|"
        r"nommée?s?|appelée?s?|qui|[a-z]+s?$)\b))",
        "has",
        "{speaker} a {object}",
        0.85,
    ),
    ExtractionRule(
        "has named",
        r"<J>ai <ADV>une? <AGED>(?P<relation><WOMAN>|<MAN>)(?:,? (?:nommée?|appelée?|qui s'appelle|"
        r"du nom de)) (?P<object><FIRST>)",
        "has_{relation}",
        "{speaker} a {relation} : {object}",
        0.95,
    ),
)
