"""How people speak about themselves in Spanish."""

from __future__ import annotations

import re
from collections.abc import Iterator

from retain.ingest.languages.language import Ending, Expression, Speech, Things

_VERBS = (
    "(?:soy|estoy|vivo|resido|tengo|trabajo|estudio|hablo|juego|toco|aprendo|odio|detesto|prefiero|adoro|amo|nací|crecí|"
    "como|bebo|tomo|debo|fumo|llevo|voy|vengo|viajo|quiero|puedo|sé|hago|soporto|aguanto|era|fui|somos|vivimos|tenemos)"
)
"""Forms that say who speaks, as no pronoun has to."""
_TASTES = "(?:gusta|gustan|gustó|gustaba|gustaban|encanta|encantan|encantó|fascina|fascinan|apasiona|apasionan)"
_CONJUNCTION = "(?:y|e|pero|así que|porque|ya que|pues|o|entonces|además|también|aunque|sino que|mientras)"
_SUBJECT = (
    rf"(?:yo\b|mis?\b|me\b|a mí\b|a (?:él|ella|ellos|ellas|ti|mi)\b|(?:ya )?no (?:me )?(?:{_VERBS}|{_TASTES})\b|"
    rf"ya no\b|{_VERBS}\b|nos\b|nuestr[oa]s?\b|él\b|ella\b|ellos\b|ellas\b|tú\b|te\b|tus?\b|usted\b|su\b|les?\b|es\b|"
    r"son\b|está\b|están\b|eso\b|esto\b)"
)

SPEECH = Speech(
    personal=Expression(
        rf"\b(?:yo|mis?|me (?:llam|gust|encant|fascin|apasion|mud|molest|dicen)\w*|{_VERBS}|nos|nuestr[oa]s?|siempre|nunca|"
        r"jamás|a partir de ahora|de ahora en adelante|en adelante|recu[eé]rd[ae]me|recordame|ll[aá]m[ae]me|"
        r"tut[eé][ae]me|he dejado|antes (?:vivía|trabajaba|fumaba)|trát[ae]me|dejé|contáct[ae]me|escríb[ae]me)\b"
    ),
    asking=Expression(
        r"(?:(?:y|pero|entonces|o|bueno|hola|oye),? )*(?:¿|(?:qué|quién|quiénes|cuándo|dónde|adónde|por qué|cómo|"
        r"cuánt[oa]s?|cuál|cuáles|acaso|puedes|podés|podrías|sabes|sabés|quieres|tienes|tenés|debo yo)\b)"
    ),
    hedged=Expression(
        r"\b(?:si(?!,)|quizás?|tal vez|a lo mejor|probablemente|posiblemente|supuestamente|aparentemente|supong\w*|supon\w*|"
        r"supón|imagin\w*|creo|creía|creí|pienso|pensaba|pensé|espero|ojalá|deseo|desearía|sueño|soñé|soñaba|apuesto|dudo|"
        r"\w+ría(?:mos)?(?<!tenía)(?<!quería)|quisiera|hubiera|fuera|tuviera|pudiera|fuese|broma|bromeo|por ejemplo|p\. ?ej|"
        r"fing\w*|finj\w*|como si|a menos que|a no ser|en caso de|personaje|novela|papel|letra|no estoy segur[oa]|dizque)\b"
    ),
    reported=Expression(
        r"\b(?:dice|dicen|dijo|dije|dijeron|decía|decían|dicho|digo|cuenta|contó|cuentan|pregunt(?:a|ó|aron|an|é)|según|"
        r"escribió|escribe que|afirm\w*|asegur[aó]|respond(?:ió|ieron)|contest(?:ó|aron)|oí|oído|escuché|citó|anunci\w*|"
        r"mentí\w*|mentira)\b"
    ),
    negated=Expression(r"\b(?:no|nunca|jamás|nada|nadie|ning[uú]n\w*|ni|sin|tampoco|apenas|casi)\b"),
    lead=Expression(
        r"[¡\s]*(?:(?:hola|buenas|buenos días|buenas tardes|buenas noches|hey|oye|querid[oa] \w+|sí|si(?=,)|no(?=[,.;])|ok|"
        r"okay|vale|bueno|bien|claro|pues|ah|oh|entonces|así que|y|pero|de hecho|en realidad|la verdad(?: es que)?|"
        r"por cierto|por lo demás|honestamente|sinceramente|francamente|genial|gracias|perdón|lo siento|encantad[oa]|"
        r"mucho gusto|para que sepas|a propósito|jaja|además|también|igualmente|exacto|actualmente|ahora|personalmente|"
        r"hoy en día|nota|posdata|por supuesto|desde luego|amig[oa])\b[\s,.!:;¡-]*)*"
    ),
    new_subject=Expression(
        rf"(?:\s*[,;:]|\s+[.-])?\s+(?:{_CONJUNCTION} )*"
        rf"(?=(?:(?:ahora|actualmente|hoy) )?{_SUBJECT}|(?:recuérd[ae]me|ll[aá]mame)\b|"
        r"(?:de ahora en adelante|a partir de ahora)\b)"
    ),
    joined=Expression(rf"[,;:.]|\s-\s|\b{_CONJUNCTION}\s*$"),
    contrast=Expression(r",? (?:y |pero )?(?P<other>no (?:en|de|a|al|con|para|el|la) [^,]+)$"),
)

THINGS = Things(
    ends=(
        Expression(
            r"\s*(?:[;:()¡¿]|\s-\s|\s\.\s|,? \b(?:porque|pues|pero|cuando|mientras|como|si|aunque|excepto|salvo|"
            r"sobre todo|especialmente|en especial|antes|después|hasta|desde|para que|así que|gracias|ya que|sino|"
            r"aun|incluso|casi|en vez de|en lugar de|tanto|más que|mejor que|y todo eso|y eso|en (?:invierno|verano|"
            r"otoño|primavera)|"
            r"por (?:la|las|el) (?:mañanas?|tardes?|noches?|salud)|al amanecer|por favor|en (?:días|tardes|noches) \w+)\b|"
            r", (?:que|quien|donde|lo que|la que|el que|es decir)\b).*$"
        ),
        Expression(r"(?:,| y)(?=[^,]*\b(?:es|son|era|eran|está|están)\b).*$"),
        Expression(
            rf"(?:,? [ye]|,| o) (?=(?:{_SUBJECT}|también\b|nunca\b|siempre\b|a veces\b|luego\b|después\b|así\b|se\b|"
            r"lo\b|por eso\b|viceversa\b)).*$"
        ),
        Expression(
            r"(?:,? (?:también|mucho|muchísimo|bastante|demasiado|siempre|de verdad|realmente|en general|la verdad|a veces|"
            r"de vez en cuando|últimamente|ahora|hoy|todos los días|todas las \w+|todos los \w+|cada \w+|todo el tiempo|"
            r"tampoco|para nada|en absoluto|más que nada|por encima de todo|la mayoría del tiempo|con moderación|"
            r"ahora mismo|por el momento|yo mism[oa]|personalmente|por cierto|de hecho|más|nada|señora?|"
            r"a menudo|con frecuencia|(?:ja){2,}|lol|xd))+$"
        ),
    ),
    none=Expression(
        r"(?:y|o|pero|est[eao]s?|es[eao]s?|aquel\w*|él|ella|ello|ellos|ellas|ambos|ambas|los dos|las dos|tod[oa]s?|"
        r"nada|algo|alguien|algun\w*|cómo|cuando|donde|dónde|por qué|qué|quien|mucho|también|solo|muy|tan|más|menos|mejor|"
        r"peor|no|ni|nunca|jamás|entre|al|(?:dos|tres)$|(?:hacer|decir) cosas$|ning[uú]n\w*|tanto|ser|estar|"
        r"un[ao]? (?:idea|forma|cosa|parte|poco|montón|poquito)|(?:las? )?cosas?|que|de|a|en|lo|"
        r"cualquier\w*|(?:la |una )?(?:idea|forma|manera|pinta|actitud|sensación|propuesta|respuesta|pregunta)|"
        r"(?:el )?(?:hecho|modo|aspecto|lugar|sitio|resultado)|pensar|creer|saber|ver(?=$| [cqs])|decir|tener|haber|"
        r"cada|tal|así|demasiad[oa]s?|much[oa]s|poc[oa]s?|mí|con|para|por|uno|una|otr[oa]s?)\b"
    ),
    definite=Expression(r"(?!)"),
    pointing=Expression(
        r"\b(?:tú|ti|te(?! (?:verde|negro))|tus?|sus?|él|ella|ellos|ellas|usted\w*|vosotr[oa]s|vuestr[oa]s?|suy[oa]s?|"
        r"tuy[oa]s?|est[aeo]s?|es[aeo]s?|aquel|aquell[oa]s?|aquí|allí|ahí|allá|acá|mí|mis?|nuestr[oa]s?|contigo|conmigo|"
        r"que|cual|quienes?|les?|nos|os|se|me|tal|tales|mism[oa]s?|otr[oa]s? cosas?|barbaridad)\b|"
        r"\b(?!(?:parte|suerte|muerte|fuerte|perlas?|charlas?)\b)\w+(?:ar|er|ir)(?:[mts]e|l[aeo]s?|nos)\b|"
        r"\w+(?:ándo|iéndo|ár|ér|ír)(?:me|te|se)?l[aeo]s?\b"
    ),
    unfinished=Expression(
        r"(?:^|\s)(?:a|de|del|para|con|en|sobre|por|y|o|e|el|la|los|las|un|una|mi|muy|al|no|es|tan|más|como)$"
    ),
    deed_ends=Expression(r"(?:,? (?:porque|ya que|pero|así que) |,? (?:gracias|ok|vale|por favor)$).*$"),
)

AFTER_ENDED = Expression(
    r"\s*(?:$|[.,;:!)(]|-\s|\b(?:y|pero|desde|porque|ya que|sino|ahora|hoy|ayer|después|tras|hace|el año|este|esta|"
    r"debido|por)\b)"
)
"""What may follow the object of a fact that is over."""

_ENDED = (
    Expression(r"(?:yo )?ya no (?P<rest>(?!(?:mucho|tanto|tan|muy|solo|siempre)\b)\S.*)$"),
    Expression(rf"(?:yo )?no (?P<verb>{_VERBS}) más (?!(?:que|de)\b)(?P<rest>.+)$"),
)
_STOPPED = Expression(
    r"(?:yo )?(?:dejé de|he dejado de|antes|solía) (?P<verb>fumar|fumaba|trabajar|trabajaba|vivir|vivía|tomar|tomaba)\b"
    r"(?P<rest>.*)$"
)
_DENIED = Expression(
    rf"(?:yo )?no (?P<verb>{_VERBS}) (?!(?:solo|sólo|solamente|únicamente|siempre|exactamente|realmente|muy|mucho|tan|tanto|"
    r"más|menos|todo|segur[oa]|necesariamente|precisamente|nada|nunca|un[ao]?s?|el|la|los|las|como|quien)\b)(?P<rest>.+)$"
)
_STILL = Expression(r"\b(?:todavía|aún|otra vez|de nuevo|sigo)\b")
_FIRST = {"fum": "soy fumador", "trabaj": "trabajo", "viv": "vivo", "tom": "tomo"}
_VERB = re.compile(r"^(?P<subject>A \{speaker\}|\{speaker\}|El \w+ de \{speaker\}|La .+? de \{speaker\}) (?P<verb>\S+)")


def endings(clause: str, _sentence: str) -> Iterator[Ending]:
    """Yield what a clause ends or denies: "Ya no vivo en Roma", "No soy vegetariana"."""
    if _STILL.search(clause):
        return
    stopped = _STOPPED.match(clause)
    if stopped is not None:
        first = next(first for stem, first in _FIRST.items() if stopped["verb"].casefold().startswith(stem))
        yield Ending(f"{first}{stopped['rest']}", "ended")
        return
    for pattern in _ENDED:
        ended = pattern.match(clause)
        if ended is not None:
            yield Ending(_positive(" ".join(ended.groups())), "ended")
            return
    denied = _DENIED.match(clause)
    if denied is not None:
        yield Ending(_positive(f"{denied['verb']} {denied['rest']}"), "denied")


def _positive(text: str) -> str:
    return re.sub(r"^fumo\b", "soy fumador", text, flags=re.IGNORECASE)


def ended_phrase(phrase: str) -> str:
    """Return the sentence for a fact that has ended, from a rule's for one that holds."""
    ended, found = _VERB.subn(r"\g<subject> ya no \g<verb>", phrase, count=1)
    return ended if found else f"{phrase} (ya no)"
