"""What kind a query or a statement is, in each language: patterns and words, as data for `languages.reading`.

Patterns for languages in Latin letters are applied to text without accents, in lower case; those for English, Chinese and
Japanese to the text as it is. A gap of other words is bounded, so that no text takes quadratic time.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from retain.memory.recall.languages.detection import ENGLISH

CHINESE, JAPANESE = "zh", "ja"


@dataclass(frozen=True, slots=True)
class Kinds:
    """The patterns and words of one language.

    conversational: words of those who talk with each other. question: a beginning that is a question. answered: it asks for
    what an assistant answered, or for a summary. looking_back: it wants to be reminded, or names an earlier conversation.
    own_past: it asks for the asker's own past or, except in English, for a person. advice: it asks for advice. when: a
    beginning that asks for a date. past: it asks for what was. standing: phrases of standing instructions. preferring:
    phrases all of whose words a text has that states a preference or an aversion. changed: words that say that something is
    not as it was. negating: words that negate. In Chinese and Japanese the last two are parts of the text. denied: what a
    statement contrasts with the truth, one of its groups: "Friday" in ", not Friday".
    """

    conversational: re.Pattern[str]
    question: re.Pattern[str]
    answered: re.Pattern[str]
    looking_back: re.Pattern[str]
    own_past: re.Pattern[str]
    advice: re.Pattern[str]
    when: re.Pattern[str]
    past: re.Pattern[str]
    standing: tuple[str, ...]
    preferring: tuple[str, ...]
    changed: frozenset[str]
    negating: frozenset[str]
    denied: re.Pattern[str]


_SENTENCE = r"(?:[^.!?]|\.(?=\S)|(?<=\b\w)\.|(?<=\b(?:dr|mr|ms|st|vs|sr))\.|(?<=\b(?:mrs|sra|dra))\.|(?<=\bprof)\.)*+"
"""Up to the end of a sentence, and giving nothing back. A full stop within a number or a name, or after a letter or a title,
does not end one.
"""


def _kinds(
    *,
    conversational: str,
    answered: str,
    looking_back: str,
    own_past: str,
    advice: str,
    when: str,
    past: str,
    standing: str,
    preferring: str,
    changed: str,
    negating: str,
    denied: str,
    question: str = _SENTENCE + r"\?",
) -> Kinds:
    """Return the kinds of a language. standing, preferring: phrases between semicolons. changed, negating: words."""

    def compiled(pattern: str) -> re.Pattern[str]:
        return re.compile(pattern, re.IGNORECASE)

    def phrases(listed: str) -> tuple[str, ...]:
        return tuple(phrase.strip() for phrase in listed.split(";"))

    return Kinds(
        compiled(conversational),
        compiled(question),
        compiled(answered),
        compiled(looking_back),
        compiled(own_past),
        compiled(advice),
        compiled(when),
        compiled(past),
        phrases(standing),
        phrases(preferring),
        frozenset(changed.split()),
        frozenset(negating.split()),
        compiled(denied),
    )


def _contrast(negation: str, but: str, instead: str) -> str:
    """Return the pattern of what a statement denies: in ", not Friday", "not Friday but Monday", "instead of Friday"."""
    denied = rf"(?:{negation})\s+(?!(?:{_ONLY})\b)"
    clause = r"([^.,;!?]{1,60}"
    return (
        rf"(?:[,;–—]|\b(?:{_AND}|{but})\b)\s*{denied}{clause})"
        rf"|\b{denied}{clause}?),?\s+(?:{but})\b"
        rf"|\b(?:{instead})[\s']*{clause})"
    )


_ONLY = "only|just|merely|nur|bloss|seulement|uniquement|solo|solamente|so|somente|apenas|soltanto|alleen|slechts"
_AND = "and|und|et|y|e|ed|en"
_GAP = r"[^.!?]{0,60}"
KINDS: Mapping[str, Kinds] = {
    ENGLISH: _kinds(
        conversational=r"\b(?:i|me|my|we|our|us|let's|you|your)\b",
        answered=r"\b(?:did|do|could|would|had|have) you (?:\w+ )?(?:say|said|tell|told|give|gave|given|mention|provide"
        r"|explain|list|describe)|\b(?:did|had|have) you (?:\w+ )?(?:suggest|recommend|advise|propose)"
        r"|\byou (?:\w+ )?(?:said|told|gave|suggested|recommended|mentioned|provided|explained|listed|advised|proposed"
        r"|described|created|wrote)\b"
        r"|\bwe (?:\w+ )?(?:talked|spoke|chatted|discussed|outlined|decided|agreed|settled|came up)\b"
        r"|\b(?:summary|summaries|summari[sz]e|overview|recap)\b",
        looking_back=r"\bremind (?:me|us)\b"
        r"|\b(?:our|a|the|in|from) (?:last|previous|earlier|prior|past) (?:conversation|chat|discussion|session)s?\b",
        own_past=r"\b(?:(?:did|have|had|was|were|am|do) i|i(?:'ve| have| said| mentioned| brought| \w+ed)|my"
        r"|our (?:conversation|discussion|chat|session)s?)\b",
        advice=r"\b(?:(?<!did you )(?:suggest|recommend|advise)(?!e?d\b)|(?<!you )(?:suggested|recommended|advised)"
        r"|help me|should i|can i|could i|how (?:can|do|would|should)|show me|walk me"
        r"|explain|would you|what (?:\w+ )?(?:tools|options|steps|ways)"
        r"|what(?:'s| is| are| would be) (?:some|the best|a good)"
        r"|(?:any|some) (?:\w+ )?(?:tips?|advice|ideas?|thoughts)\b|tips (?:on|for)\b|do you think)",
        when=r"\s*(?:when|how long|(?:what|which) (?:date|day|week|month|year|time))\b",
        past=r"\b(?:used to|before|former(?:ly)?|previous(?:ly)?|earlier|original(?:ly)?|initial(?:ly)?|old|first)\b",
        standing="when I ask; whenever I ask; if I ask; each time I ask; every time I ask; from now on; going forward",
        preferring="prefer; avoid; dislike; hate; refuse; allergic; allergy; intolerant; aversion; can't stand; don't like"
        "; not a fan",
        changed="actually anymore became cancelled canceled changed corrected correction handed increased instead left"
        " longer lowered moved now postponed raised reduced renamed replaced rescheduled since switched updated upgraded"
        " wrong",
        negating="cannot forbidden incompatible lacks never no nobody none not nothing prohibited refused refuses rejects"
        " t unable without",
        denied=_contrast("not", "but", "instead of|rather than"),
    ),
    "de": _kinds(
        conversational=r"\b(?:ich|mich|mir|mein(?:e[nmrs]?)?|wir|uns|unser(?:e[nmrs]?)?|du|dich|dir"
        r"|dein(?:e[nmrs]?)?)\b",
        answered=rf"\b(?:hast|hattest|haben|hatten) (?:du|sie)\b{_GAP}\b(?:gesagt|genannt|geraten|gegeben|empfohlen"
        r"|vorgeschlagen|erwahnt|erklart|aufgelistet|beschrieben|geschrieben|erstellt)\b"
        r"|\b(?:gesagt|genannt|geraten|gegeben|empfohlen|vorgeschlagen|erwahnt|erklart|beschrieben) hast\b"
        r"|\bwir\b[^.!?]{0,60}\b(?:be|ge)sprochen\b"
        rf"|\bzusammenfass\w*|\bfass\w*\b{_GAP}\bzusammen\b|\buberblick\b",
        looking_back=r"\berinner\w* mich\b"
        r"|\b(?:letzte|vorige|fruhere)[nsrm]? (?:gesprach|unterhaltung|chat|diskussion|sitzung)\w*",
        own_past=r"^\s*(?:wer|wem|wen|wessen)\b|\b(?:hab|habe|hatte|bin|war|wollte|mag) ich\b"
        r"|\bich\b[^.!?]{0,60}\b(?:hab|habe|hatte|war|bin)\b"
        r"|\bmein(?:e[nmrs]?)?\b|\bunsere?[nmrs]? (?:gesprach|unterhaltung|chat|diskussion)\w*",
        advice=rf"\b(?:empfiehl|empfehl|schlag\w*\b{_GAP}\bvor\b|rate mir|hilf|helfen|soll(?:te)? ich|sollten wir"
        rf"|kann ich"
        r"|konnte ich|konnen wir|zeig mir|zeigen sie mir|erklar\w* (?:mir|uns|bitte|wie|sie)"
        r"|wie (?!hab|hatt|heiss|war|bin|mag)\w+ (?:ich|man|wir)\b|wie konnt\w+"
        r"|welche (?:\w+ )?(?:werkzeuge|moglichkeiten|schritte|wege)"
        r"|was (?:ist|sind|ware|waren) (?:d\w+ beste\w*|gute|einige|ein paar)"
        r"|(?:irgendwelche|einige|ein paar|noch|hast du|habt ihr|haben sie|gibt es)\b[^.!?]{0,30}"
        r"\b(?:tipps?|ideen|ratschlage?)\b"
        r"|was (?:meinst|denkst|haltst) du|was (?:meinen|denken|halten) sie)",
        when=r"\s*(?:(?:seit|bis|ab) wann|wann|wie lange"
        r"|(?:an |in |zu )?welche[nmrs]? (?:datum|tag|woche|monat|jahr))\b",
        past=r"\b(?:fruher\w*|ehemal\w*|vorher\w*|damals|ursprunglich\w*|bisher\w*|zuvor|anfangs|erste[nmrs]?"
        r"|alte[nmrs]?)\b",
        standing="wenn ich nach; wenn ich dich; wenn ich frage; immer wenn ich; jedes Mal wenn ich; sobald ich nach"
        "; von jetzt an; ab jetzt; von nun an; ab sofort; in Zukunft",
        preferring="bevorzuge; bevorzugt; lieber; am liebsten; vermeide; meide; hasse; mag nicht; mag kein; mag keine"
        "; allergisch; Allergie; verabscheue; Abneigung",
        changed="abgelost abgesagt aktualisiert erhoht ersetzt geandert gesenkt gewechselt inzwischen jetzt korrektur"
        " mittlerweile neu neue neuen neuer neues nun seit stattdessen umbenannt umgezogen umzog ubernommen verlegt"
        " verschoben wechselt wechselte zog zieht",
        negating="abgelehnt kein keine keinem keinen keiner keines lehnt nicht nichts nie niemals niemand ohne verboten"
        " verweigert weder",
        denied=_contrast("nicht", "sondern", "statt|anstatt|anstelle"),
    ),
    "fr": _kinds(
        conversational=r"\b(?:je|j'|me|m'|moi|mon|ma|mes|nous|notre|nos|tu|te|t'|toi|ton|ta|tes|vous|votre|vos)(?!\w)",
        answered=r"\b(?:m'as|m'avez|nous as|nous avez|tu as|vous avez|as-tu|avez-vous|tu avais|vous aviez)"
        rf"\b{_GAP}\b(?:dit|donne|suggere|recommande|conseille|mentionne|propose|explique|decrit|cite|indique|ecrit)\w*"
        r"|\b(?:nous avons|on a|avons-nous|avions-nous) (?:\w+ )?(?:parle|discute|evoque|decide)\b"
        r"|\b(?:resume[rz]?|resumes|recapitul\w*|synthese|apercu)\b",
        looking_back=r"\brappelle[sz]?-moi\b|\bme rappeler\b"
        r"|\b(?:derniere|precedente) (?:conversation|discussion|session)\b|\b(?:conversation|discussion) precedente\b",
        own_past=r"^\s*(?:(?:a |de )?qui)\b|\b(?:ai-je|avais-je|suis-je|etais-je|j'ai|j'avais|j'etais|mon|ma|mes"
        r"|nos (?:conversations|discussions|echanges))\b",
        advice=r"\b(?:suggere|recommande|conseille|propose|aide|aidez|peux-tu|pouvez-vous|dois-je|devrais-je|puis-je"
        r"|pourrais-je|est-ce que je (?:dois|peux|devrais|pourrais)|comment (?:puis|faire|dois|peut|fait|faut|je peux)"
        r"|montre|explique|quels? (?:\w+ )?(?:outils|etapes|moyens|options)"
        r"|quel(?:le)?s? (?:est|sont|serait|seraient) l[ea]s? meilleur"
        r"|(?:des|un|quelques) (?:conseils?|astuces?|idees?)\b|penses-tu|pensez-vous)",
        when=r"\s*(?:(?:depuis|jusqu'a) quand|quand|(?:pendant |depuis )?combien de temps|a quelle date"
        r"|(?:a |en |dans |de )?quel(?:le)?s? (?:date|jour|semaine|mois|annee))\b",
        past=r"\b(?:avant|ancien\w*|auparavant|autrefois|precedent\w*|jadis|au debut|initial\w*|origine|premiere?s?)\b",
        standing="quand je te; quand je demande; quand je pose; quand je t'interroge; chaque fois que je; si je te demande"
        "; lorsque je demande; désormais; dorénavant; à partir de maintenant; à l'avenir",
        preferring="préfère; préférerais; aime mieux; évite; déteste; n'aime pas; refuse; allergique; allergie; aversion"
        "; ne supporte pas",
        changed="annule annulee augmente baisse change corrige correction deplace demenage desormais devenu"
        " devenue finalement maintenant modifie nouveau nouvel nouvelle reporte reportee remplace remplacee renomme"
        " repris succede",
        negating="aucun aucune interdit interdite jamais n ne ni non pas personne refuse rien sans",
        denied=_contrast(r"(?:ne |n')\w+ pas|non|pas|non pas", "mais", "au lieu d[eu]?|plutot que?"),
    ),
    "es": _kinds(
        conversational=r"\b(?:yo|me|mi|mis|nos|nosotr[oa]s|nuestr[oa]s?|tu|te|ti|tus|usted|ustedes|conmigo)\b",
        answered=r"\b(?:me|nos) (?:has|habias|ha|habia)?\s?(?:dijiste|dicho|dijo|diste|dado|suger(?:iste|ido)"
        r"|recomend(?:aste|ado)|aconsej(?:aste|ado)|mencion\w+|propus\w+|propuesto|explic\w+|list\w+|describi\w+)"
        r"|\b(?:recomendaste|sugeriste|dijiste|mencionaste|propusiste|explicaste|aconsejaste|describiste|escribiste)\b"
        r"|\b(?:hablamos|discutimos|decidimos|acordamos)\b"
        r"|\b(?:resumen|resume|resumir|resumeme|recapitul\w+)\b",
        looking_back=r"\b(?:recuerdame|recordarme)\b|\b(?:ultima|anterior) (?:conversacion|charla|sesion)\b"
        r"|\b(?:conversacion|charla|sesion) (?:anterior|pasada)\b",
        own_past=r"^[\s\u00bf]*(?:(?:a |de )?quien(?:es)?)\b|\b(?:he|habia|dije|mencione|compre|tuve|fui|hice"
        r"|estuve|mis?|nuestras? (?:conversacion|charla)\w*"
        r"|tengo|soy)\b",
        advice=r"\b(?:recomienda\w*|recomendar\w*|sugier\w+|aconsej[ae]\w*|ayuda(?:me)?|deberia|debo|puedo|podria"
        r"|como (?:puedo|se|hago|debo|deberia|podria)|muestra(?:me)?|ensename|explica(?:me)?"
        r"|que (?:\w+ )?(?:herramientas|opciones|pasos|formas)"
        r"|cual(?:es)? (?:es|son|seria|serian) (?:el|l[ao]s?) mejor(?:es)?"
        r"|algun[ao]?s? (?:consejos?|ideas?)|que (?:opinas|piensas|opina|te parece)|crees que)\b",
        when=r"[\s\u00bf]*(?:(?:desde|hasta) cuando|cuando|(?:durante )?cuanto (?:tiempo|dura)"
        r"|(?:a|en|de)? ?que (?:fecha|dia|semana|mes|ano))\b",
        past=r"\b(?:antes|anterior\w*|antigu[oa]s?|antiguamente|original\w*|inicial\w*|viej[oa]s?|primer[oa]?s?"
        r"|al principio)\b",
        standing="cuando te pregunte; cuando pregunte; cuando te pida; cada vez que pregunte; cada vez que te"
        "; si te pregunto; siempre que te; de ahora en adelante; a partir de ahora; en adelante",
        preferring="prefiero; prefiere; preferiría; gusta más; evito; odio; detesto; no gusta; no gustan; alérgico; alérgica"
        "; alergia; aversión; no soporto",
        changed="actualizado ahora aplazado aumentado bajado cambia cambiado cambio cancelo cancelado cancelada corregido"
        " correccion finalmente mudado mudo nueva nuevo pospuesto reemplazado renombrado subido sustituido sustituye"
        " traslada trasladado",
        negating="jamas nada nadie ni ningun ninguna ninguno no nunca prohibido rechaza rechazo sin tampoco",
        denied=_contrast("no", "sino", "(?:en lugar|en vez) del?"),
    ),
    "pt": _kinds(
        conversational=r"\b(?:eu|me|mim|meu|meus|minha|minhas|nos|nosso|nossos|nossa|nossas|tu|te|ti|teu|teus|tua"
        r"|tuas|voce"
        r"|voces|comigo)\b",
        answered=r"\b(?:voce|tu)\b[^.!?]{0,20}\b(?:disse|deu|sugeriu|recomendou|aconselhou|mencionou|propos|explicou"
        r"|listou"
        r"|descreveu|escreveu)\b"
        r"|\b(?:disseste|deste|sugeriste|recomendaste|aconselhaste|mencionaste|propuseste|explicaste|descreveste)\b"
        r"|\b(?:falamos|conversamos|discutimos|decidimos)\b"
        r"|\b(?:resumo|resuma|resume|resumir|recapitul\w+)\b",
        looking_back=r"\b(?:lembr[ae]-me|me lembr(?:ar|a|e)|recorda-me)\b|\bultima (?:conversa|discussao|sessao)\b"
        r"|\b(?:conversa|discussao|sessao) (?:anterior|passada)\b",
        own_past=r"^\s*(?:(?:a |de )?quem)\b|\b(?:eu (?:disse|tive|fui|fiz|comprei|mencionei|tinha|tenho|sou|estava)"
        r"|disse que eu|meus?|minhas?"
        r"|nossas? (?:conversa|discussao)\w*)\b",
        advice=r"\b(?:recomend[ae]\w*|sugir[ae]\w*|sugere|aconselh[ae]\w*|ajud[ae](?:-me)?|devo|deveria|posso|poderia"
        r"|como (?:posso|se|faco|devo|deveria|poderia|fazer)|mostr[ae](?:-me)?|expli(?:ca|que)(?:-me)?"
        r"|que (?:\w+ )?(?:ferramentas|opcoes|passos|formas)"
        r"|qua(?:l|is) (?:e|sao|seria|seriam) [ao]s? melhor(?:es)?"
        r"|algu(?:m|ma|ns|mas) (?:conselhos?|dicas?|ideias?)|que (?:achas|acha|pensas)|achas? que)\b",
        when=r"\s*(?:(?:desde|ate) quando|quando|(?:durante |ha )?quanto tempo"
        r"|(?:em |n[oa] )?(?:que|qual) (?:data|dia|semana|mes|ano))\b",
        past=r"\b(?:antes|anterior\w*|antig[oa]s?|antigamente|original\w*|inicial\w*|velh[oa]s?|primeir[oa]s?"
        r"|dantes)\b",
        standing="quando eu perguntar; quando eu pedir; quando te perguntar; sempre que eu; se eu perguntar"
        "; cada vez que eu; de agora em diante; a partir de agora; daqui em diante; doravante",
        preferring="prefiro; prefere; preferia; gosto mais; evito; odeio; detesto; não gosto; alérgico; alérgica; alergia"
        "; aversão; não suporto",
        changed="adiada adiado afinal agora alterado atualizado aumentou baixou cancelada cancelado cancelou corrigido"
        " correcao mudaram mudou nova novo passou reagendado renomeado subiu substituida substituido substituiu trocou",
        negating="jamais nada nao nem nenhum nenhuma ninguem nunca proibido recusa recusou sem tampouco",
        denied=_contrast("nao", "mas|e sim", "(?:em vez|ao inves) d[aeo]"),
    ),
    "it": _kinds(
        conversational=r"\b(?:io|mi|me|mio|mia|miei|mie|noi|ci|nostr[oaie]|tu|ti|te|tuo|tua|tuoi|tue|voi"
        r"|vostr[oaie])\b",
        answered=r"\b(?:(?:mi|ci) )?(?:hai|avevi|avete|aveva)\b[^.!?]{0,20}\b(?:detto|dato|suggerito|raccomandato"
        r"|consigliato|menzionato|proposto|spiegato|elencato|descritto|scritto)\b"
        r"|\b(?:abbiamo|avevamo) (?:\w+ )?(?:parlato|discusso|deciso)\b"
        r"|\b(?:riassunto|riassumi\w*|riepilog\w+|panoramica)\b",
        looking_back=r"\b(?:ricordami|ricordarmi)\b"
        r"|\b(?:ultima|scorsa|precedente) (?:conversazione|discussione|chat|sessione)\b",
        own_past=r"^\s*(?:(?:a |di )?chi)\b|\b(?:ho|avevo|ero|sono (?:stat|andat)[oa]|mio|mia|miei|mie"
        r"|nostr[ae] (?:conversazion|discussion|chat)\w*)\b",
        advice=r"\b(?:consigli\w*|suggerisc\w+|suggerire|raccomand[ai]\w*|aiut[aoi]\w*|dovrei|devo"
        r"|posso|potrei"
        r"|come (?:posso|si|faccio|devo|dovrei|potrei)|mostra(?:mi)?|spiega(?:mi)?"
        r"|(?:quali|che) (?:\w+ )?(?:strumenti|opzioni|passi|modi)"
        r"|qual[ei]? (?:e|sono|sarebbe|sarebbero) (?:il|la|i|le) miglior[ei]"
        r"|(?:qualche|delle) (?:suggeriment[oi]|ide[ae]|dritt[ae])|ne (?:pensi|dici|pensa|dice)|pensi che)\b",
        when=r"\s*(?:(?:da|fino a) quando|quando|(?:per |da )?quanto (?:tempo|dura)"
        r"|(?:in |a )?(?:che|quale) (?:data|giorno|settimana|mese|anno))\b",
        past=r"\b(?:prima|precedent\w*|vecchi[oae]?|una volta|un tempo|original\w*|inizial\w*|all'inizio|ex"
        r"|prim[oaie])\b",
        standing="quando chiedo; quando ti chiedo; quando ti domando; ogni volta che chiedo; ogni volta che ti"
        "; se ti chiedo; d'ora in poi; da ora in poi; da adesso in poi; d'ora in avanti; in futuro",
        preferring="preferisco; preferisce; preferirei; piace di più; evito; odio; detesto; non piace; non piacciono"
        "; allergico; allergica; allergia; avversione; non sopporto",
        changed="adesso aggiornato annullata annullato aumentato cambiata cambiato cambia corretto correzione diventata"
        " diventato invece nuova nuovo ora ormai rimandato rinominato rinviata rinviato ridotto sostituita"
        " sostituito sostituisce spostata spostato subentra trasferita trasferito traslocato",
        negating="divieto mai ne nemmeno nessun nessuna nessuno niente non nulla rifiuta rifiutato senza vietato",
        denied=_contrast("non", "ma|bensi", "invece d[ei]l?|anziche"),
    ),
    "nl": _kinds(
        conversational=r"\b(?:ik|mij|mijn|wij|we|ons|onze|jij|je|jou|jouw|u|uw)\b",
        answered=rf"\b(?:heb|had|hebt|heeft) (?:je|jij|u)\b{_GAP}\b(?:gezegd|gegeven|voorgesteld|aanbevolen|aangeraden"
        r"|genoemd|uitgelegd|beschreven|geschreven|opgesomd)\b"
        r"|\b(?:zei|gaf|noemde|adviseerde|schreef) (?:je|jij|u)\b"
        r"|\bwe\b[^.!?]{0,60}\b(?:be|af|ge)sproken\b"
        r"|\b(?:samenvat\w*|vat\b[^.!?]{0,60}\bsamen|overzicht)\b",
        looking_back=r"\bherinner\w* me\b|\bme (?:eraan |er even aan )?herinneren\b"
        r"|\b(?:laatste|vorige?) (?:gesprek|discussie|chat|sessie)\b",
        own_past=r"^\s*(?:wie|wiens)\b|\b(?:heb|had|ben|was|wilde) ik\b|\bik (?:heb|had|ben|was|zei|noemde)\b|\bmijn\b"
        r"|\bonze? (?:gesprek|discussie|chat)\w*",
        advice=r"\b(?:raad\b|adviseer|aanbevel\w*|stel\b[^.!?]{0,60}\bvoor\b|help|moet ik|zal ik|kan ik"
        r"|kunnen we|zou ik|zou je|hoe (?:kan|moet|zou|maak|doe|krijg|installeer|stel) (?:ik|je|we|men)"
        r"|laat\b[^.!?]{0,30}\bzien|leg\b[^.!?]{0,60}\buit\b|welke (?:\w+ )?(?:tools|opties|stappen|manieren)"
        r"|wat (?:is|zijn|zou|zouden) (?:de|het) beste"
        r"|(?:enige|wat|nog|heb je|heeft u|hebt u|zijn er)\b[^.!?]{0,30}\b(?:tips?|advies|ideeen)\b"
        r"|wat (?:vind|denk)t? (?:je|jij|u)\b)",
        when=r"\s*(?:(?:sinds|tot|vanaf) wanneer|wanneer|hoe ?lang"
        r"|(?:op |in )?welke? (?:datum|dag|week|maand|jaar))\b",
        past=r"\b(?:vroeger|voorheen|eerder|vorige?|oorspronkelijke?|aanvankelijk|destijds|oude?|eerste)\b",
        standing="als ik vraag; als ik je; als ik naar; wanneer ik vraag; telkens als ik; elke keer dat ik; vanaf nu"
        "; voortaan; van nu af aan; in het vervolg",
        preferring="liever; verkies; voorkeur; liefst; vermijd; haat; hou niet van; houd niet van; houdt niet van"
        "; allergisch; allergie; afkeer",
        changed="afgezegd bijgewerkt geannuleerd gecorrigeerd gewijzigd inmiddels intussen nieuw nieuwe nu omgedoopt"
        " overgenomen sinds uitgesteld vanaf veranderd verhoogd verhuisd verhuisde verhuist verlaagd verplaatst"
        " vervangen vervangt verzet voortaan",
        negating="geen geweigerd nergens niemand niet niets noch nooit verboden weigert zonder",
        denied=_contrast("niet", "maar", "in plaats van"),
    ),
    CHINESE: _kinds(
        conversational="我|咱|你|您",
        question="[^。！!？?]*[？?]",
        answered="(?:你|您)(?:之前|上次|刚才|曾经?|以前|当时)?[^。！？?]{0,12}"
        "(?:(?:说过?|提到|告诉|给出|列出|解释|提供|描述)(?:过|了|的|什么|哪)|(?:建议|推荐)(?:过|了|的))"
        "|我们(?:之前|上次|以前)|总结|概括|摘要|概述|回顾",
        looking_back="提醒(?:我|一下)|(?:之前|上次|以前)的?(?:对话|聊天|讨论|谈话)",
        own_past="谁|哪位|我(?:之前|上次|以前|曾|说过|提到|买了|有没有|是不是|的)|我们(?:的|之前)?(?:对话|聊天|讨论)",
        advice="推荐|建议|帮我|帮忙|我(?:应该|该|可以|能)|怎么(?:才能|做|办|样)|如何|怎样|请(?:给我)?(?:解释|说明|展示)|教我"
        "|有(?:哪些|什么)好?(?:工具|方法|办法|步骤|选择|主意|想法|点子|技巧|窍门)|你(?:觉得|认为|怎么看)",
        when="\\s*(?:[^。，,？?]{0,20}(?:什么时候|何时|哪(?:一)?(?:天|年|个?月|周|日)|几(?:月|号)|多久|多长时间))",
        past="以前|之前|原来|原先|过去|曾经|当初|最初|旧|第一",
        standing="当我问; 每当我问; 每次我问; 如果我问; 我问到; 从现在起; 从现在开始; 今后; 往后"
        "; 當我問; 每當我問; 每次我問; 我問到; 從現在起; 從現在開始; 今後; 往後",
        preferring="更喜欢; 偏好; 宁愿; 偏爱; 更喜歡; 寧願; 偏愛; 不喜欢; 不喜歡; 讨厌; 討厭; 过敏; 過敏; 避免; 不吃",
        changed="改为 改成 改到 改由 换成 换了 变成 变更 搬家 搬到 搬去 搬了"
        " 更新 更正 推迟 提前到 取消了 取代 接任 接替 涨到 降到"
        " 不再 现在 如今 目前 升级 调到 调整",
        negating="不 没 無 无 未 非 别 勿 禁止 拒绝 除外",
        denied=r"(?:[，,；]|而)而?不是([^，。,；！？]{1,20})|不是([^，。,；！？]{1,20})[，,]?而是",
    ),
    JAPANESE: _kinds(
        conversational="私|僕|俺|わたし|あなた|君は|うちの|ましょう",
        question="[^。！!？?]*(?:[？?]|か。|か$)",
        answered="(?:言って|教えて|勧めて|薦めて|提案して|説明して|挙げて|紹介して|書いて)(?:くれ|いただ|もらっ|いました|いた)"
        "|(?:言い|勧め|薦め|提案し|説明し|挙げ|紹介し)ましたか|要約|まとめて|概要|振り返",
        looking_back="(?:前回|この前|以前)の?(?:会話|話|チャット)|思い出させ",
        own_past="誰|どなた|(?:私|僕|わたし|俺)(?:は|が|の)[^。？?]{0,30}(?:ました|でした|った)|(?:私|僕|わたし|俺)の"
        "|(?:私|僕)たちの(?:会話|話)",
        advice="おすすめ|お勧め|勧めて(?:ください|下さい|ほしい)|薦めて(?:ください|下さい)|助けて|手伝って"
        "|アドバイス|提案して(?:ください|下さい)"
        "|どうすれば|どうやって|どのように|したらいい|すればいい|べき(?:です)?か"
        "|教えて(?:ください|下さい|ほしい)|説明して(?:ください|下さい)|方法"
        "|(?:アイデア|コツ)(?:は|が)あ|コツを教え|助言を|どう思(?:う|い)",
        when="[^。、？?]{0,30}(?:いつ|何日|何月|何年|何曜日|どのくらいの間|どれくらいの間|どの(?:日|週|月|年))",
        past="以前|前の|昔|かつて|元の|もともと|当初|最初|旧",
        standing="聞いたら; 聞いたとき; 聞くときは; 尋ねたら; 尋ねたとき; 質問したら; 質問したとき"
        "; 今後は; これからは; 今から",
        preferring="方が好き; ほうが好き; 方がいい; ほうがいい; 方を好; 嫌い; 苦手; 避けて; アレルギー",
        changed="引っ越 変わり 変わっ 変更 なりました になっ 代わり 替わり"
        " 交代 交替 移り 移っ 移転 更新 訂正 延期 中止 キャンセルし"
        " 値上げ 値下げ 引き継 改名 今は 現在は",
        negating="ない ません なく ず、 なし 無 不 禁止 断り 断って 以外",
        denied=r"([^、。はがをにも\s]{1,20})(?:では|じゃ|で)なく(?!て?は)",
    ),
}
