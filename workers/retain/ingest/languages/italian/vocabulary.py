"""The parts of Italian rules' patterns, as regular expressions without capturing groups."""

from __future__ import annotations

from collections.abc import Mapping

_DAY = "(?:lunedì|martedì|mercoledì|giovedì|venerdì|sabato|domenica)"
_MONTH = "(?:gennaio|febbraio|marzo|aprile|maggio|giugno|luglio|agosto|settembre|ottobre|novembre|dicembre)"
_LETTERS = "A-ZÀÈÉÌÒÙ"
_CAPITAL = rf"[{_LETTERS}][\w'-]*"
_GIVEN = rf"[{_LETTERS}][a-zàèéìòù]+(?:-[{_LETTERS}][a-zàèéìòù]+)?"
_LANGUAGE = (
    "(?:(?:l'|il |lo )?(?:inglese|francese|tedesco|spagnolo|italiano|olandese|portoghese|polacco|russo|ucraino|mandarino|"
    "cinese|giapponese|coreano|arabo|ebraico|turco|greco|svedese|norvegese|danese|finlandese|ceco|ungherese|rumeno|hindi|"
    "persiano|vietnamita|catalano|latino|esperanto|albanese|croato|sardo))"
)

PARTS: Mapping[str, str] = {
    "I": "(?:(?:[Aa]nch'io|[Ii]o) )?",
    "ME": "(?:[Aa] me )?[Mm]i ",
    "IM": "(?:(?:[Aa]nch'io|[Ii]o) )?[Ss]ono ",
    "MY": "(?:(?:[Ii]l|[Ll]a|[Ii]|[Ll]e) )?(?:[Mm]io|[Mm]ia|[Mm]iei|[Mm]ie)",
    "ADV": (
        "(?:(?:attualmente|adesso|ora|anche|ancora|davvero|sempre|principalmente|soprattutto|solo|soltanto|già|"
        r"felicemente|da solo|da sola|da (?:\w+ ){1,2}(?:anni|anno|mesi|mese|settimane)|dal \d{4}) ){0,4}"
    ),
    "PLEASE": "(?:[Pp]er (?:favore|piacere),? )?",
    "NAME": rf"{_GIVEN}(?: (?:(?:de|di|da|del|della|dello|d') ?)?{_GIVEN}){{0,3}}(?![\w-])",
    "FIRST": (
        rf"(?!(?:Io|Lui|Lei|Ma|Noi|Voi|Signore|Signora|Signor|Sig|Dott|Natale|Dio)\b){_GIVEN}(?: {_GIVEN})?(?![\w-])"
    ),
    "PLACE": (
        r"(?!(?:Via|Viale|Piazza|Corso|Casa|Università|Natale|Pasqua|Internet|Facebook)\b)"
        rf"(?:{_CAPITAL}(?:(?:-| (?:(?:di|del|della|dei|d'|sul|in) ?)?){_CAPITAL}){{0,4}})(?<![.])"
    ),
    "IN": "(?:a|ad|in|nel|nella|nello|nell'|negli|nelle)",
    "OF": "(?:da |dal |dalla |dallo |dall'|dagli |dalle )",
    "TO": "(?:a |ad |al |allo |alla |all'|ai |agli |alle )",
    "ORG": (rf"(?:[{_LETTERS}0-9][\w.&'-]*)(?: (?:(?:e|&|di|del|della) )?[{_LETTERS}0-9][\w.&'-]*){{0,4}}(?<![.])"),
    "END": (
        r"(?=\s*(?:$|[.,;:!)(]|-\s|\b(?:e|ed|ma|con|per|da|dal|ora|adesso|perché|dove|in|nel|nella|al|alla|a|ad|come|su|"
        r"vicino|quindi|anche|attualmente|insieme|tutt[oi]|ogni|o|durante|fino|\d+)\b|all'|nell'))"
    ),
    "STOP": (
        r"(?=\s*(?:$|[.,;!)(]|-\s|\b(?:e|ed|ma|ora|adesso|anche|da|dal|perché|di (?:professione|mestiere)|con|per|"
        r"attualmente|quest'anno|lo scorso|la scorsa|l'anno)\b))"
    ),
    "EMAIL": r"[A-Za-z0-9][\w.+-]*@[\w-]+(?:\.[\w-]+)+",
    "PHONE": r"\+?\(?\d(?:[\s().-]{0,2}\d){6,14}",
    "DATE": (
        rf"(?:(?:il |l')?(?:1[º°]|primo|\d{{1,2}}) {_MONTH}(?: (?:del )?\d{{4}})?|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|"
        r"\d{4}-\d\d-\d\d)"
    ),
    "DUE": (
        rf"(?:\b(?:entro|per|prima di|questo|questa|alle|fino a) (?:le |il |la |fine )?(?:{_DAY}|domani|oggi|stasera|"
        rf"mezzogiorno|fine settimana|settimana|mese|\d)|\bdomani\b|\bdopodomani\b|\bstasera\b|\bquesto pomeriggio\b|"
        rf"\bla (?:prossima settimana|settimana prossima)\b|\b{_DAY}\b)"
    ),
    "SOON": (
        rf"(?:\bdomani\b|\b{_DAY}(?: prossim[oa])?\b|\b(?:la settimana|il mese|l'anno|l'estate) prossim[oa]\b|"
        rf"\b(?:la prossima settimana|il prossimo (?:mese|anno)|quest'estate|questo fine settimana)\b|\b(?:a|in) {_MONTH}\b)"
    ),
    "WOMAN": (
        "(?:moglie|compagna|fidanzata|ragazza|figlia|madre|mamma|sorella|suocera|cognata|nonna|zia|cugina|amica|coinquilina|"
        "vicina|collega|gatta|gattina|cagna|cagnolina|cavalla|tartaruga)"
    ),
    "MAN": (
        "(?:marito|compagno|fidanzato|ragazzo|figlio|padre|papà|babbo|fratello|suocero|cognato|nonno|zio|cugino|"
        "nipote|amico|"
        "coinquilino|vicino|capo|medico|dentista|bambino|cane|cagnolino|gatto|gattino|cucciolo|cavallo|coniglio|criceto|"
        "pappagallo)"
    ),
    "AGED": "(?:(?:piccol[oa]|miglior[e]?|car[oa]|nuov[oa]|vecchi[oa]) )*",
    "AFTER": "(?: (?:maggiore|minore|più grande|più piccol[oa]|gemell[oa]))?",
    "COUNTED": (
        "(?:can[ei]|cagnolin[oi]|cucciol[oi]|gatt[oiae]|gattin[oi]|figli[oae]?|bambin[oiae]|fratell[oi]|sorell[ae]|nipoti|"
        "nipotini|cavall[oi]|conigli[o]?|criceti?|pappagall[oi]|gallin[ae]|pesci(?: rossi)?|gemell[ie]|tartarugh?[ae])"
    ),
    "JOB": (
        "(?:agente immobiliare|agricoltore|architetto|artigian[oa]|assistente sociale|attore|attrice|autista(?: di \\w+)?|"
        "avvocat[oa]|bagnin[oa]|bancari[oa]|barista|bibliotecari[oa]|biolog[oa]|camerier[ea]|camionista|cassier[ea]|"
        "chimic[oa]|chirurg[oa]|commercialista|commess[oa]|consulente|contabile|contadin[oa]|cuoc[oa]|dentista|"
        "designer|dottoressa|economista|educatore|educatrice|elettricista|estetista|falegname|farmacista|fioraio|fisic[oa]|"
        "fisioterapista|fotograf[oa]|geometra|giardinier[ea]|giornalista|giudice|grafic[oa]|guida turistica|idraulic[oa]|"
        "impiegat[oa]|infermier[ea]|informatic[oa]|ingegnere(?: \\w+)?|insegnante(?: di \\w+)?|maestr[oa](?: d'\\w+)?|"
        "meccanic[oa]|medic[oa]|muratore|notaio|operai[oa](?: \\w+)?|ostetrica|panettiere|parrucchier[ea]|pescatore|pilota|"
        "pizzaiolo|poliziott[oa]|pompiere|professore(?: di \\w+)?|professoressa(?: di \\w+)?|programmatore|programmatrice|"
        "psicolog[oa]|receptionist|ricercatore|ricercatrice|saldatore|sart[oa]|scienziat[oa]|segretari[oa]|storic[oa]|"
        "tassista|tecnic[oa]|traduttore|traduttrice|veterinari[oa]|venditore|venditrice)"
    ),
    "WORKPLACE": (
        "(?:un |uno |una |un')?(?:agenzia|asilo|azienda|banca|bar|biblioteca|caffetteria|casa di riposo|clinica|"
        "centro commerciale|fabbrica|farmacia|fattoria|ferramenta|garage|hotel|albergo|laboratorio|libreria|museo|negozio|"
        "officina|ospedale|panetteria|pizzeria|rifugio|ristorante|scuola(?: elementare| materna)?|studio legale|"
        "supermercato|teatro|ufficio|università)(?: (?:di|del|per) (?!notte|giorno|sera|pagare|sostenere)[a-zàèéìòù]+)?"
    ),
    "PURSUIT": (
        "(?:studente|studentessa|pensionat[oa]|apprendista|musicista|cantante|baller[io]n[oa]|artista|scrittore|scrittrice|"
        "autore|autrice|pittore|pittrice|poeta|pianista|chitarrista|casalinga|casalingo|volontari[oa]|tirocinante|atleta)"
    ),
    "LANGUAGE": _LANGUAGE,
    "PLAYED": (
        "(?:(?:il |la |lo |l'|le )?(?:fisarmonica|banjo|basso|batteria|clarinetto|cornamusa|flauto|chitarra|armonica|arpa|"
        "organo|piano|pianoforte|sassofono|sax|trombone|tromba|ukulele|violino|violoncello|viola|percussioni))"
    ),
    "SPORT": (
        "(?:badminton|basket|pallacanestro|baseball|carte|scacchi|calcio|calcetto|golf|hockey|pallamano|pallavolo|padel|"
        "ping[ -]?pong|poker|rugby|squash|tennis|softball|football)"
    ),
    # What a person can instruct an assistant to do: the imperative, and the infinitive after "non".
    "DO": (
        "(?i:(?:rispondi|risponda|rispondimi|scrivi|scriva|scrivimi|usa|usi|utilizza|utilizzi|spiega|spiegami|aggiungi|"
        "evita|menziona|traduci|includi|parlami|dammi|mostrami|avvisami|chiedimi|chiamami|consigliami|mandami|inviami|"
        "dimmi))"
    ),
    "NOTDO": (
        "(?i:(?:rispondere|rispondermi|scrivere|scrivermi|usare|utilizzare|spiegare|spiegarmi|aggiungere|menzionare|"
        "tradurre|includere|parlarmi|darmi|mostrarmi|chiedermi|chiamarmi|consigliarmi|mandarmi|inviarmi))"
    ),
    "EVER": "(?i:sempre|d'ora in poi|da ora in poi|in futuro)",
}

NAMES: Mapping[str, str] = {
    "moglie": "wife", "marito": "husband", "compagna": "partner", "compagno": "partner", "fidanzata": "girlfriend",
    "fidanzato": "boyfriend", "ragazza": "girlfriend", "ragazzo": "boyfriend", "figlia": "daughter", "figlio": "son",
    "madre": "mother", "mamma": "mother", "padre": "father", "papà": "father", "babbo": "father", "sorella": "sister",
    "fratello": "brother", "nonna": "grandmother", "nonno": "grandfather", "zia": "aunt", "zio": "uncle",
    "cugina": "cousin", "cugino": "cousin", "amico": "friend", "amica": "friend", "cane": "dog", "cagna": "dog",
    "cagnolino": "dog", "cagnolina": "dog", "gatto": "cat", "gatta": "cat", "gattino": "cat", "gattina": "cat",
    "cavallo": "horse", "capo": "boss", "vicino": "neighbour", "vicina": "neighbour", "collega": "colleague",
    "cognato": "brother_in_law", "cognata": "sister_in_law", "suocero": "father_in_law", "suocera": "mother_in_law",
    "colore": "color", "colori": "color", "piatto": "dish", "cibo": "food", "cibi": "food", "film": "movie",
    "libro": "book", "libri": "book", "cosa": "thing", "canzone": "song", "gruppo": "band", "band": "band",
    "animale": "animal", "sport": "sport",
    "città": "city", "paese": "country", "materia": "subject", "bevanda": "drink", "musica": "music", "serie": "series",
    "autore": "author", "autrice": "author", "frutto": "fruit", "gioco": "game", "squadra": "team", "stagione": "season",
    "dolce": "dessert", "numero": "number", "fiore": "flower", "passatempo": "hobby", "hobby": "hobby",
    "cantante": "singer", "attore": "actor", "attrice": "actress", "ristorante": "restaurant", "scrittore": "writer",
    "programma": "show", "videogioco": "video_game",
}  # fmt: skip
"""Italian words of relations, and how their names have them, so that a fact is one in any language."""
