"""Rules for what somebody likes, dislikes, cannot or will not have, in Spanish."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_ART = r"(?P<art>(?:el |la |los |las |un |una )?)"
_NO_AMOUNT = (
    r"(?!(?:mucho|mucha|much[oa]s|tanto|tanta|demasiad[oa]|nada|eso|esto|como|en|con|un|una|de|antes|hasta|ahora|bien|más|"
    r"desde|por|a)\b)(?!.*\b(?:a menudo|todos los|todo el tiempo|cada|hoy|esta|ahora|después|antes|mañana|ayer|aquí)\b)"
)
"""Not followed by how much or how often: who does not eat it every day eats it."""
_MUCH = (
    r"(?:(?:mucho|un montón|muchísimo|también|bastante|especialmente|particularmente|realmente|de verdad|sobre todo|"
    r"siempre|tanto|demasiado) )*"
)
_THIS = (
    r"(?!(?:el|la|los|las) (?:libro|casa|habitación|vestido|sombrero|camisa|chaqueta|corbata|coche|auto|mesa|silla|película|"
    r"foto|imagen|canción|chic[oa]|hombre|mujer|tipo|regalo|trabajo|profesora?|equipo|lugar|sitio)"
    r"(?: (?:azul|roj[oa]|nuev[oa]|blanc[oa]|negr[oa]))?\s*(?:[,.;]|$))"
    r"(?!(?:el|la|los|las) (?:primer[oa]?|segund[oa]|últim[oa]s?|siguiente|anterior|mism[oa]s?|otr[oa]s?|del?|que)\b)"
)
"""Not followed by something that is here."""
_CASE = r"(?!.*\b(?:cuando|como|si|tanto|tan|por las?|mientras|antes|después|demasiad[oa]s?)\b)"
"""Not followed by when, or which of them: who does not like music as much as you may like it."""

_SPANISH = (
    r"(?!.*(?:\b(?:il|gli|di|che|per|nel|dei|degli|delle|della|anche|e|i|sono|molto)\b|\w'))"
    r"(?=(?:el|los|las|un|al) |.*(?:[áéíóúñ]|\b(?!con\b|non\b|per\b|bar\b)\w{2,}[dnrsz]\b))"
)
"""What "amo" and "odio" are Spanish before, as they are Italian, too."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "allergic",
        r"<IM>(?:muy |también |gravemente |extremadamente )*alérgic[oa] (?P<art>(?:a la |a los |a las |al |"
        r"a ))(?P<object>.+)$",
        "allergic_to",
        "{speaker} tiene alergia {art}{object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "allergy",
        r"<I>[Tt]engo (?:una )?alergia (?P<art>(?:a la |a los |a las |al |a ))(?P<object>.+)$",
        "allergic_to",
        "{speaker} tiene alergia {art}{object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "condition",
        r"<IM>(?P<object>intolerante (?:a la lactosa|al gluten|a la fructosa)|diabétic[oa]|asmátic[oa]|epiléptic[oa]|"
        r"daltónic[oa]|sord[oa]|cieg[oa]|celíac[oa]|celiac[oa]|hipertens[oa])<STOP>",
        "has_condition",
        "{speaker} es {object}",
        0.9,
    ),
    ExtractionRule(
        "has a condition",
        r"<I>(?:[Tt]engo|[Pp]adezco(?: de)?|[Ss]ufro de) (?P<object>(?:diabetes|asma|epilepsia|hipertensión|celiaquía|"
        r"intolerancia a la lactosa|migrañas?|artritis))<STOP>",
        "has_condition",
        "{speaker} tiene {object}",
        0.9,
    ),
    ExtractionRule(
        "diet",
        r"<IM><ADV>(?:un |una )?(?:estrictamente )?(?P<object>vegetarian[oa]|vegan[oa]|pescetarian[oa])<STOP>",
        "diet",
        "{speaker} es {object}",
        0.9,
    ),
    ExtractionRule(
        "abstains",
        rf"<I>(?:[Yy]a )?(?:[Nn]o|[Nn]unca) (?P<deed>como|bebo|tomo) (?:nunca )?{_NO_AMOUNT}{_ART}(?P<object>.+)$",
        "avoids",
        "{speaker} no toma {art}{object}",
        0.85,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "takes",
        r"<I>[Tt]omo (?:(?P<dose>\d+ ?m[cg]?g) de )?(?:el |la |un |una )?(?P<object>(?!(?:café|té|agua|leche|vino|cerveza|"
        r"desayuno|vitaminas|medicinas?|baño|ducha|autobús|tren|metro|"
        r"bus)\b)[A-Za-zÁÉÍÓÚáéíóúñ][\w-]+)(?= (?:todos los días|"
        r"todas las (?:mañanas|noches)|cada (?:día|mañana|noche)|a diario|contra|para la (?:tensión|presión|diabetes)|"
        r"una vez al día|dos veces al día)\b)",
        "takes",
        "{speaker} toma {object}",
        0.8,
    ),
    ExtractionRule(
        "smoker",
        r"<IM>(?:un |una )?(?:gran )?(?P<object>fumador|fumadora)<STOP>",
        "smokes",
        "{speaker} es {object}",
        0.85,
    ),
    ExtractionRule(
        "favourite, after",
        rf"<MY> (?P<what>[a-záéíóúñ]+) (?P<favourite>favorit[oa]s?|preferid[oa]s?)(?: de todos los tiempos)? "
        rf"(?P<be>es|son) (?:(?:definitivamente|también|siempre|sin duda) )*{_ART}"
        r"(?P<object>(?!(?:de|cuando|que|a|en|para|por|probablemente|muy|tan|más)\b).+)$",
        "favorite_{what}",
        "{what} {favourite} de {speaker}: {art}{object}",
        0.9,
        functional=True,
        reading="thing",
    ),
    ExtractionRule(
        "favourite, last",
        r"(?P<art>[Ee]l |[Ll]a |[Ll]os |[Ll]as )(?P<object>[a-záéíóúñ]+) (?P<be>es|son) <MY> "
        r"(?P<what>[a-záéíóúñ]+) (?P<favourite>favorit[oa]s?|preferid[oa]s?)<STOP>",
        "favorite_{what}",
        "{what} {favourite} de {speaker}: {art}{object}",
        0.85,
        functional=True,
        reading="thing",
    ),
    ExtractionRule(
        "likes",
        rf"<ME>(?P<verb>gusta|gustan|encanta|encantan|fascina|fascinan|apasiona|apasionan) {_MUCH}"
        rf"(?!(?:más|menos|poco)\b){_THIS}{_ART}(?P<object>.+)$",
        "likes",
        "A {speaker} le {verb} {art}{object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "loves",
        rf"<I>(?:[Aa]doro|[Aa]mo) (?!al?\b){_SPANISH}{_MUCH}{_THIS}{_ART}(?P<object>.+)$",
        "likes",
        "A {speaker} le gusta {art}{object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "fan of",
        r"<IM><ADV>(?:un |una )?(?:(?:gran|verdader[oa]|enorme) )?(?:fan|fanátic[oa]|aficionad[oa]|amante|apasionad[oa]|"
        r"hincha) (?P<of>(?:de la |de los |de las |del |de |a la |a los |a las |al ))(?P<object>.+)$",
        "likes",
        "A {speaker} le gusta: {object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "dislikes",
        rf"<I>(?:[Dd]etesto|[Oo]dio|[Aa]borrezco) (?!al?\b){_SPANISH}{_CASE}{_MUCH}{_THIS}{_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} detesta {art}{object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "does not like",
        rf"(?:[Aa] mí )?(?:[Yy]a )?[Nn]o me (?P<verb>gusta|gustan) (?:nada )?{_CASE}{_MUCH}(?!(?:más|"
        rf"menos)\b){_THIS}{_ART}(?P<object>.+)$",
        "dislikes",
        "A {speaker} no le {verb} {art}{object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "cannot stand",
        rf"<I>[Nn]o (?:soporto|aguanto) (?!a\b|más\b){_CASE}{_THIS}{_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} no soporta {art}{object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "prefers",
        rf"<I>[Pp]refiero {_MUCH}{_THIS}(?!(?:ir|irme|venir|salir|volver|viajar|jugar|morir|pedir|pasar|tomar|"
        rf"coger)\b){_ART}(?P<object>.+?)(?: (?:a la|al|a los|a las|antes que|que|a) .*)?$",
        "prefers",
        "{speaker} prefiere {art}{object}",
        0.85,
        reading="thing",
    ),
)
