"""The parts of German rules' patterns, as regular expressions without capturing groups. Nouns have capitals, too."""

from __future__ import annotations

from collections.abc import Mapping

_DAY = "(?:Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonnabend|Sonntag)"
_MONTH = (
    r"(?:Jan(?:uar)?|Jänner|Feb(?:ruar)?|März|Mär|Apr(?:il)?|Mai|Juni?|Juli?|Aug(?:ust)?|Sep(?:t|tember)?|Okt(?:ober)?|"
    r"Nov(?:ember)?|Dez(?:ember)?)\b\.?"
)
_CAPITAL = r"[A-ZÄÖÜ][\w.'&-]*"
_GIVEN = r"[A-ZÄÖÜÉ][a-zà-ÿ]+(?:-[A-ZÄÖÜÉ][a-zà-ÿ]+)?"
_NO_PLACE = (
    "(?:Miete|Untermiete|Trennung|Scheidung|Frieden|Angst|Armut|Elternzeit|Rente|Teilzeit|Vollzeit|Arbeit|Eile|Not|Panik|"
    "Ordnung|Ruhe|Sicherheit|Schichten|Gedanken|Sünde|Wirklichkeit|Zimmer|Gebäude|Block|Etage|Armut|"
    "Wohngemeinschaften|Gefahr|Haft|Quarantäne|"
    "Behandlung|Therapie|Stimmung|Form|Kürze|Zukunft|Moment|Beziehung|Ehe|Hotel|Haus|Wohnung|Bewegung|Betracht|"
    r"Erwägung|Saus|Luxus|Jetzt|Ausland|[A-ZÄÖÜ][a-zäöüß]*(?:heit|keit|schaft|zeit|zeiten|nähe|weite|geschoss)|Zeiten|"
    f"{_DAY}|{_MONTH})"
)
_LANGUAGE = (
    "(?:Englisch|Französisch|Deutsch|Spanisch|Italienisch|Niederländisch|Portugiesisch|Polnisch|Russisch|Ukrainisch|"
    "Mandarin|Chinesisch|Japanisch|Koreanisch|Arabisch|Hebräisch|Türkisch|Griechisch|Schwedisch|Norwegisch|Dänisch|"
    "Finnisch|Tschechisch|Ungarisch|Rumänisch|Hindi|Farsi|Persisch|Kroatisch|Serbisch|Kurdisch|Albanisch|Vietnamesisch|"
    "Latein|Katalanisch|Schweizerdeutsch)"
)
_TIMES = r"(?:seit(?: (?!in\b|bei\b|als\b|im\b)[\w.]+){1,3}?)"
_ADVERBS = (
    r"(?:(?:jetzt|derzeit|zurzeit|zur Zeit|momentan|aktuell|gerade|inzwischen|mittlerweile|nun|auch|noch|immer noch|"
    r"immer|selbst|"
    r"eigentlich|wirklich|sehr|total|echt|absolut|besonders|am meisten|am liebsten|ebenfalls|ja|schon(?: lange| immer)?|"
    rf"seither|hauptsächlich|meistens|meist|vor allem|generell|grundsätzlich|normalerweise|beruflich|hauptberuflich|"
    rf"{_TIMES}) ){{0,4}}"
)
"""Of a few: "since" takes words that are adverbs, too, and any number of them could be read in as many ways."""
_NO_NAME = (
    f"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember|{_DAY}|Weihnachten|Ostern)"
)
_DATED = rf"(?:{_DAY}(?:morgen|vormittag|mittag|nachmittag|abend)?|{_MONTH}|Weihnachten|Ostern|Silvester)"


STATING = (
    r"(?:(?i:ich|wir) (?i:<VERBS>)|(?i:seit(?: [\w.]+){1,3}?|jetzt|derzeit|zurzeit|momentan|aktuell|inzwischen|"
    r"mittlerweile|nun|beruflich|ursprünglich|eigentlich|privat|zu hause|am liebsten|besonders) (?i:<VERBS>) (?:ich|wir)|"
    r"(?i:<VERBS>)(?: ich| wir)?) <ADV>"
)
"""What somebody says of themselves with a verb: "ich wohne", "seit 2020 wohne ich", "wohne". "Jetzt mag Tom Eis" says it of
Tom, and "heute" what is so today."""


PARTS: Mapping[str, str] = {
    "MY": "(?:[Mm]eine?|[Mm]einen?)",
    "ADV": _ADVERBS,
    "PLEASE": r"(?:[Bb]itte,? )?",
    "NAME": rf"{_GIVEN}(?: (?:von|van|zu|de|der|den) )?(?: ?{_GIVEN}){{0,2}}(?![\w-])",
    "FIRST": rf"(?!(?:Ich|Es|Er|Sie|Wir|Und|Aber|{_NO_NAME}|Herr|Frau|Dr|Mutter|Vater|Bruder|"
    rf"Schwester)\b){_GIVEN}(?: {_GIVEN})?(?![\w-])",
    "PLACE": (
        rf"(?:der (?:Schweiz|Türkei|Ukraine|Slowakei|Mongolei|Pfalz|Eifel|Lausitz|Toskana|Bretagne|Provence|Steiermark)|"
        r"den (?:USA|Niederlanden|Vereinigten Staaten|Philippinen)|dem (?:Libanon|Iran|Irak|Sudan|Kosovo|Saarland)|"
        rf"(?!{_NO_PLACE}\b){_CAPITAL}(?:(?:,? (?:am|an der|im|bei|ob der) | ){_CAPITAL}){{0,3}})(?<![.])"
    ),
    "ORG": (
        rf"(?!(?:{_DATED}|Nacht|Tag|Tageslicht|Regen|Kerzenlicht|Bedarf|Freunden|Kunden|Gelegenheit|Hitze|Kälte|"
        rf"Geld|Lohn|Mindestlohn|Rot|Anfänger|Fortgeschrittene)\b)"
        rf"(?:[A-ZÄÖÜ0-9][\w.&'-]*)(?: (?:(?:und|&|für|der|des) )?[A-ZÄÖÜ0-9][\w.&'-]*){{0,4}}(?<![.])"
    ),
    "END": (
        r"(?=\s*(?:$|[.,;:!)(]|-\s|\b(?:und|aber|mit|für|seit|jetzt|weil|da|denn|wo|in|im|bei|beim|als|am|an|auf|von|"
        r"nach|zu|zur|"
        r"zum|aus|nahe|neben|zusammen|gemeinsam|alleine?|auch|gerade|zurzeit|derzeit|momentan|und zwar|oder|\d+)\b))"
    ),
    "STOP": r"(?=\s*(?:$|[.,;!)(]|-\s|\b(?:und|aber|mit|von Beruf|jetzt|geworden)\b))",
    "EMAIL": r"[A-Za-z0-9][\w.+-]*@[\w-]+(?:\.[\w-]+)+",
    "PHONE": r"\+?\(?\d(?:[\s()./-]{0,2}\d){6,14}",
    "DATE": (rf"(?:\d{{1,2}}\.? ?{_MONTH}(?: \d{{4}})?|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{2,4}})?|\d{{4}}-\d\d-\d\d)"),
    "DUE": (
        rf"(?:\b(?:bis|am|im|ab|vor|um|nächste[rnsm]?|kommende[rnsm]?|diese[rnsm]?)(?: (?:zum|spätestens|nächsten|"
        rf"kommenden|diesen))* "
        rf"(?:{_DATED}|Ende|Woche|Monat|Jahr|Wochenende|morgen|heute|Mittag|Abend|\d|eins|zwei|drei|vier|fünf|sechs|"
        rf"sieben|acht|neun|zehn|elf|zwölf)|\b(?:morgen|übermorgen|heute)\b)"
    ),
    "WOMAN": (
        "(?:Frau|Ehefrau|Partnerin|Lebensgefährtin|Verlobte|Freundin|Tochter|Mutter|Mama|Schwester|Großmutter|Oma|"
        "Enkelin|Tante|"
        "Cousine|Nichte|Stieftochter|Ex-Frau|Mitbewohnerin|Nachbarin|Chefin|Kollegin|Therapeutin|Ärztin|Hausärztin|"
        "Zahnärztin|Lehrerin|Vermieterin|Katze|Hündin|Stute)"
    ),
    "MAN": (
        "(?:Mann|Ehemann|Partner|Lebensgefährte|Verlobter|Freund|Sohn|Vater|Papa|Bruder|Großvater|Opa|Enkel|Onkel|"
        "Cousin|Neffe|"
        "Stiefsohn|Ex-Mann|Mitbewohner|Nachbar|Chef|Kollege|Therapeut|Arzt|Hausarzt|Zahnarzt|Lehrer|Vermieter|Hund|"
        "Kater|Hamster|Papagei)"
    ),
    "IT": "(?:Kind|Baby|Enkelkind|Patenkind|Pferd|Kaninchen|Kätzchen)",
    "AGED": (
        r"(?:(?:jüngere|jüngste|ältere|älteste|kleine|große|beste|gute|enge|liebe|neue|neugeborene|\d+-jährige)[rns]? )*"
    ),
    "COUNTED": (
        "(?:Hunde?|Hündin|Welpen?|Katzen?|Kater|Kinder|Kind|Töchter|Tochter|Söhne|Sohn|Brüder|Bruder|Schwestern|Schwester|"
        "Geschwister|Enkel(?:kinder|in|kind)?|Pferde?|Kaninchen|Hamster|Papageien?|Meerschweinchen|Hühner|Neffen?|"
        "Nichten?|Zwillinge)"
    ),
    "JOB": (
        r"(?:\w+-)?(?:[A-ZÄÖÜ][a-zäöüß]*)?(?i:anwalt|anwältin|apotheker(?:in)?|architekt(?:in)?|arzt|ärztin|bäcker(?:in)?|"
        r"bauer|bäuerin|beamter|beamtin|berater(?:in)?|bibliothekar(?:in)?|biolog(?:e|in)|buchhalter(?:in)?|chemiker(?:in)?|"
        r"designer(?:in)?|dolmetscher(?:in)?|elektriker(?:in)?|entwickler(?:in)?|erzieher(?:in)?|fotograf(?:in)?|"
        r"friseur(?:in)?|"
        r"gärtner(?:in)?|grafiker(?:in)?|handwerker(?:in)?|hebamme|historiker(?:in)?|informatiker(?:in)?|ingenieur(?:in)?|"
        r"journalist(?:in)?|jurist(?:in)?|kauffrau|kaufmann|kellner(?:in)?|koch|köchin|krankenpfleger(?:in)?|"
        r"krankenschwester|"
        r"landwirt(?:in)?|lehrer(?:in)?|lektor(?:in)?|maler(?:in)?|manager(?:in)?|mathematiker(?:in)?|maurer(?:in)?|"
        r"mechaniker(?:in)?|metzger(?:in)?|notar(?:in)?|optiker(?:in)?|pfarrer(?:in)?|physiker(?:in)?|pilot(?:in)?|"
        r"physiotherapeut(?:in)?|polizist(?:in)?|professor(?:in)?|programmierer(?:in)?|psycholog(?:e|in)|redakteur(?:in)?|"
        r"richter(?:in)?|sanitäter(?:in)?|schauspieler(?:in)?|schneider(?:in)?|schreiner(?:in)?|sekretär(?:in)?|"
        r"sozialarbeiter(?:in)?|steuerberater(?:in)?|techniker(?:in)?|therapeut(?:in)?|tierarzt|tierärztin|tischler(?:in)?|"
        r"übersetzer(?:in)?|verkäufer(?:in)?|wissenschaftler(?:in)?|zahnarzt|zahnärztin)\b"
    ),
    "WORKPLACE": (
        "(?:[A-ZÄÖÜ][a-zäöüß-]*)?(?i:agentur|apotheke|bank|bäckerei|bar|bibliothek|buchladen|büro|café|fabrik|"
        "grundschule|hotel|kanzlei|kindergarten|kita|klinik|krankenhaus|labor|laden|museum|praxis|restaurant|schule|"
        "start-?up|supermarkt|universität|verlag|werkstatt|zeitung)"
    ),
    "PURSUIT": (
        "(?:Student(?:in)?|Schüler(?:in)?|Rentner(?:in)?|Pensionär(?:in)?|Azubi|Auszubildende[r]?|Musiker(?:in)?|"
        "Künstler(?:in)?|Schriftsteller(?:in)?|Autor(?:in)?|Hausfrau|Hausmann|Freiberufler(?:in)?|Doktorand(?:in)?)"
    ),
    "LANGUAGE": _LANGUAGE,
    "PLAYED": (
        "(?:Akkordeon|Badminton|Banjo|Basketball|Bass|Blockflöte|Cello|Eishockey|Flöte|Fußball|Fussball|Geige|Gitarre|Golf|"
        "Handball|Harfe|Hockey|Keyboard|Klarinette|Klavier|Mundharmonika|Orgel|Posaune|Querflöte|Saxophon|Saxofon|Schach|"
        "Schlagzeug|Skat|Squash|Tennis|Tischtennis|Trompete|Ukulele|Videospiele|Violine|Volleyball|Wasserball)"
    ),
    # What a person can instruct an assistant to do.
    "DO": (
        "(?:[Aa]ntworten?|[Ss]chreiben?|[Ss]chreib|[Vv]erwenden?|[Nn]utzen?|[Bb]enutzen?|[Gg]ib|[Gg]eben|[Nn]ennen?|[Nn]enn|"
        "[Ee]rklären?|[Zz]eigen?|[Zz]eig|[Ff]ügen?|[Ff]ragen?|[Ff]rag|[Dd]uzen?|[Ss]iezen?|[Ss]prich|[Ss]prechen|[Hh]alten?|"
        "[Aa]chten?|[Vv]ermeiden?|[Ll]isten?|[Ff]ormatieren?|[Rr]echnen?|[Ss]agen?|[Ss]ag|[Ss]chicken?|[Ss]chick|"
        "[Ee]rwähnen?|[Pp]rüfen?|[Üü]bersetzen?|[Mm]achen?|[Mm]ach|[Ll]assen?|[Ll]ass|[Bb]evorzugen?|[Bb]erücksichtigen?|"
        "[Ii]nformieren?|[Bb]estätigen?|[Bb]uchen?|[Kk]aufen?|[Bb]estellen?|[Kk]onsultieren?|[Rr]ufen?|[Rr]uf)"
    ),
    "EVER": r"(?:ab (?:jetzt|sofort)|von (?:jetzt|nun) an|in Zukunft|zukünftig|künftig|immer|stets|grundsätzlich|nie|"
    r"niemals)",
}

NAMES: Mapping[str, str] = {
    "frau": "wife", "ehefrau": "wife", "mann": "husband", "ehemann": "husband", "partnerin": "partner",
    "tochter": "daughter", "sohn": "son", "mutter": "mother", "mama": "mother", "vater": "father", "papa": "father",
    "schwester": "sister", "bruder": "brother", "großmutter": "grandmother", "oma": "grandmother",
    "großvater": "grandfather", "opa": "grandfather", "tante": "aunt", "onkel": "uncle", "kind": "child",
    "hund": "dog", "hündin": "dog", "katze": "cat", "kater": "cat", "pferd": "horse", "chef": "boss",
    "chefin": "boss", "freundin": "girlfriend", "freund": "boyfriend", "nachbar": "neighbour",
    "nachbarin": "neighbour", "kollege": "colleague", "kollegin": "colleague", "farbe": "color", "essen": "food",
    "gericht": "dish", "film": "movie", "buch": "book", "lied": "song", "band": "band", "tier": "animal",
    "sport": "sport", "sportart": "sport", "stadt": "city", "land": "country", "fach": "subject", "getränk": "drink",
    "musik": "music", "serie": "series", "autor": "author", "obst": "fruit", "spiel": "game",
    "restaurant": "restaurant", "verein": "team", "mannschaft": "team", "jahreszeit": "season",
    "schauspieler": "actor",
}  # fmt: skip
"""German words of relations, and how their names have them, so that a fact is one in any language."""
