"""Rules for what somebody likes, dislikes, cannot or will not have, in Italian."""

from __future__ import annotations

from retain.ingest.languages.rule import ExtractionRule

_ART = r"(?P<art>(?:il |lo |la |l'|i |gli |le |un |uno |una |un'|del |della |dei )?)"
_NO_AMOUNT = (
    r"(?!(?:molt[oaie]|tant[oaie]|tropp[oaie]|niente|nulla|quest\w*|ciò|come|in|con|un|una|di|da|prima|fino|ora|bene|più|a|"
    r"per|abbastanza|sempre|spesso|fuori|qui|al|alla|nel)\b)"
    r"(?!.*\b(?:spesso|tutti i|tutto il|ogni|oggi|stasera|adesso|ora|dopo|prima|domani|ieri|qui)\b)"
)
"""Not followed by how much or how often: who does not eat it every day eats it."""
_MUCH = (
    r"(?:(?:molto|moltissimo|anche|tantissimo|davvero|veramente|soprattutto|particolarmente|sempre|solo|un sacco|pure|"
    r"da morire|assolutamente|ancora|proprio|tanto) )*"
)
_THIS = (
    r"(?!(?:il |lo |la |l'|i |gli |le )(?:libro|casa|stanza|vestito|cappello|camicia|giacca|cravatta|macchina|auto|tavolo|"
    r"sedia|foto|immagine|canzone|ragazz[oa]|uomo|donna|tipo|regalo|lavoro|professore|professoressa|posto|film|colore|"
    r"squadra|taglio|modello|design)(?: (?:blu|ross[oa]|nuov[oa]|bianc[oa]|ner[oa]))?\s*(?:[,.;!]|$))"
    r"(?!(?:il |lo |la |l'|i |gli |le )(?:prim[oaie]|second[oa]|ultim[oaie]|prossim[oa]|precedente|stess[oaie]|altr[oaie]|"
    r"tu[oae]|tuoi|su[oae]|suoi|vostr[oaie]|loro|mi[oae]|miei|nostr[oaie]|del?|che|cosa|cose)\b)"
)
"""Not followed by something that is here, or somebody's."""
_CASE = r"(?!.*\b(?:quando|come|se|tanto|così|prima|dopo|mentre|tropp[oaie]|al mattino|la mattina|la sera)\b)"
"""Not followed by when, or which of them: who does not like music as much as you may like it."""

_ITALIAN = (
    r"(?!.*(?:\b(?:el|los|las|y|es|de|que|al|en|cuando|est[aeo]s?|es[aeo]s?|aquel\w*|pero|como|muy|mucho|porque|cada|hay|"
    r"mis|tus|sus|un[ao]s)\b|[áíóúñ]))(?!\w+(?:ar|er|ir)(?:[mts]e|l[aeo]s?|nos)?\b)"
)
"""What "amo" and "odio" are Italian before, as they are Spanish, too."""

RULES: tuple[ExtractionRule, ...] = (
    ExtractionRule(
        "allergic",
        r"<IM>(?:molto |anche |gravemente |estremamente |fortemente )*allergic[oa] (?P<art><TO>)(?P<object>.+)$",
        "allergic_to",
        "{speaker} ha un'allergia {art}{object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "allergy",
        r"<I>[Hh]o (?:un'|una (?:forte|grave|leggera) )?allergia (?P<art><TO>)(?P<object>.+)$",
        "allergic_to",
        "{speaker} ha un'allergia {art}{object}",
        0.95,
        reading="thing",
    ),
    ExtractionRule(
        "condition",
        r"<IM>(?P<object>intollerante (?:al lattosio|al glutine|al fruttosio)|diabetic[oa]|asmatic[oa]|epilettic[oa]|"
        r"daltonic[oa]|sord[oa]|ciec[oa]|celiac[oa]|ipertes[oa])<STOP>",
        "has_condition",
        "{speaker} è {object}",
        0.9,
    ),
    ExtractionRule(
        "has a condition",
        r"<I>(?:[Hh]o (?:il |l')?|[Ss]offro di )(?P<object>(?:diabete|asma|epilessia|ipertensione|celiachia|emicrania|"
        r"artrite))<STOP>",
        "has_condition",
        "{speaker} ha {object}",
        0.9,
    ),
    ExtractionRule(
        "diet",
        r"<IM><ADV>(?:un |una )?(?:strettamente )?(?P<object>vegetarian[oa]|vegan[oa]|pescetarian[oa])<STOP>",
        "diet",
        "{speaker} è {object}",
        0.9,
    ),
    ExtractionRule(
        "abstains",
        rf"<I>[Nn]on (?P<deed>mangio|bevo) (?:(?:mai|più) )?{_NO_AMOUNT}{_ART}(?P<object>.+)$",
        "avoids",
        "{speaker} non prende {art}{object}",
        0.85,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "takes",
        r"<I>[Pp]rendo (?:(?P<dose>\d+ ?m[cg]?g) di )?(?:il |la |lo |l'|un |una )?(?P<object>(?!(?:caffè|tè|acqua|"
        r"latte|vino|birra|colazione|vitamine|medicine|medicina|bagno|doccia|autobus|treno|metro|bus|sole|pillola)\b)"
        r"[A-Za-zàèéìòù][\w-]+)(?= (?:tutti i giorni|tutte le (?:mattine|sere)|ogni (?:giorno|mattina|sera)|contro|"
        r"per (?:la pressione|il diabete)|una volta al giorno|due volte al giorno)\b)",
        "takes",
        "{speaker} prende {object}",
        0.8,
    ),
    ExtractionRule(
        "smoker",
        r"<IM>(?:un |una )?(?:gran |accanit[oa] )?(?P<object>fumatore|fumatrice)<STOP>",
        "smokes",
        "{speaker} è {object}",
        0.85,
    ),
    ExtractionRule(
        "favourite, after",
        rf"<MY> (?P<what>(?!altr[oaie]|second[oa])[a-zàèéìòù]+) (?P<favourite>preferit[oaie])(?: in assoluto|"
        rf" di sempre)? (?P<be>è|sono) (?:(?:sicuramente|anche|sempre|senza dubbio|decisamente|probabilmente) )*{_ART}"
        r"(?P<object>(?!(?:di|quando|che|a|in|per|molto|così|più|stat[oa]|anche)\b).+)$",
        "favorite_{what}",
        "{what} {favourite} di {speaker}: {art}{object}",
        0.9,
        functional=True,
        reading="thing",
    ),
    ExtractionRule(
        "favourite, last",
        r"(?P<art>[Ii]l |[Ll]a |[Ll]o |[Ll]'|[Ii] |[Gg]li |[Ll]e )(?P<object>[a-zàèéìòù]+) (?P<be>è|sono) "
        r"<MY> (?P<what>(?!altr[oaie]|second[oa])[a-zàèéìòù]+) (?P<favourite>preferit[oaie])<STOP>",
        "favorite_{what}",
        "{what} {favourite} di {speaker}: {art}{object}",
        0.85,
        functional=True,
        reading="thing",
    ),
    ExtractionRule(
        "likes",
        rf"<ME>(?P<verb>piace|piacciono) {_MUCH}(?!(?:di più|più|meno|poco|fare|sapere)\b){_THIS}{_ART}(?P<object>.+)$",
        "likes",
        "A {speaker} {verb} {art}{object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "loves",
        rf"<I>(?:[Aa]doro|[Aa]mo) {_ITALIAN}{_MUCH}{_THIS}{_ART}(?P<object>.+)$",
        "likes",
        "{speaker} ama {art}{object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "fan of",
        r"<IM><ADV>(?:un |una |un')?(?:(?:gran|grande|ver[oa]|enorme) )?(?:fan|appassionat[oa]|amante|tifos[oa]) "
        r"(?P<of>(?:di |del |dello |della |dell'|dei |degli |delle ))(?P<object>.+)$",
        "likes",
        "{speaker} ama: {object}",
        0.8,
        reading="thing",
    ),
    ExtractionRule(
        "dislikes",
        rf"<I>(?:[Dd]etesto|[Oo]dio) {_ITALIAN}{_CASE}{_MUCH}{_THIS}{_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} detesta {art}{object}",
        0.85,
        reading="thing",
    ),
    ExtractionRule(
        "does not like",
        rf"(?:[Aa] me )?[Nn]on mi (?P<verb>piace|piacciono) (?:(?:più|affatto|per niente) )?{_CASE}{_MUCH}"
        rf"(?!(?:di più|più|meno)\b){_THIS}{_ART}(?P<object>.+)$",
        "dislikes",
        "A {speaker} non {verb} {art}{object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "cannot stand",
        rf"<I>[Nn]on (?:sopporto|tollero) (?!più\b){_CASE}{_THIS}{_ART}(?P<object>.+)$",
        "dislikes",
        "{speaker} non sopporta {art}{object}",
        0.8,
        reading="thing",
        denial="required",
    ),
    ExtractionRule(
        "prefers",
        rf"<I>[Pp]referisco {_MUCH}{_THIS}(?!(?:andare|venire|uscire|tornare|viaggiare|giocare|morire|pagare|passare|"
        rf"prendere|aspettare|restare)\b){_ART}(?P<object>.+?)"
        r"(?: (?:al|allo|alla|all'|ai|agli|alle|rispetto|che|a|piuttosto) ?.*)?$",
        "prefers",
        "{speaker} preferisce {art}{object}",
        0.85,
        reading="thing",
    ),
)
