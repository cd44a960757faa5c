"""Words by which a query asks for what was said, and for a conversation by its position, in each language.

The patterns are applied as those of `languages.kinds`: to text without accents, in lower case, except Chinese and Japanese.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from retain.memory.recall.languages.detection import ENGLISH
from retain.memory.recall.languages.kinds import CHINESE, JAPANESE


def _compiled(patterns: Mapping[str, str]) -> Mapping[str, re.Pattern[str]]:
    return {language: re.compile(pattern, re.IGNORECASE) for language, pattern in patterns.items()}


TALK = _compiled({
    ENGLISH: r"\b(?:discuss(?:e[ds]|ing|ions?)?|talk(?:ed|ing|s)?|chat(?:s|ted|ting)?|sa(?:y|ys|id|ying)|speak(?:ing)?"
    r"|spoken?|tells?|told|mention(?:ed|ing|s)?|convers(?:ed?|ing|ations?)|sessions?|topics?|subjects?|matters?|things?"
    r"|sorts?|kinds?|stuff|anything|something|everything|happen(?:ed|ing|s)?|going|gone|went|came|comes?|cover(?:ed)?"
    r"|br(?:ing|ought)|remember|remind|recall(?:ed)?|summar(?:y|ies|i[sz]ed?)|recap|overview|give|list|show|please|know"
    r"|ask(?:ed|ing)?|note[sd]?|learn(?:ed|t)?|stored|recorded|memories|between|earlier|past|contents?|details?|main"
    r"|points?|whole|full)\b",
    "de": r"\b(?:woruber|(?:be|ge|ange)sprochen|(?:be)?sprach(?:en|st|t)?|(?:be)?sprech(?:en|t)|reden|redete[nt]?|geredet"
    r"|unterh(?:alten|ielten|altung(?:en)?)|gesagt|sagte?[nt]?|erzahl(?:en|t|te|ten)|erwahnt(?:e[nt]?)?|themen?|thema"
    r"|dinge?|sachen?|passierte?|geschah|geschehen|los|erinner[en]?|zusammenfassung|fasse?|zusammen|uberblick|liste"
    r"|zeige?|bitte|chat(?:s|ten)?|gesprache?s?|gelernt|notiert|zwischen|alles|ging|gefragt|fragte?[nt]?)\b",
    "fr": r"\b(?:discut(?:e[srz]?|ions)|discussions?|parl(?:e[srz]?|ons|ions|ait)|dit|disais|dire|dis|mentionne[srz]?"
    r"|evoque[srz]?|aborde[srz]?|raconte[srz]?|conversations?|sujets?|themes?|choses?|passe|arrive|rappelle[sr]?"
    r"|souviens?|resume[rz]?|recapitule[rz]?|apercu|donne|liste|montre|note|appris|seances?|sessions?|entre|echange[srz]?"
    r"|demande[srz]?)\b",
    "es": r"\b(?:habl(?:amos|aste|e|o|ado|abamos|ar)|convers(?:amos|aciones|acion|ado)|charl(?:amos|as?|ado)|dij[eo]"
    r"|dijiste|dijimos|dicho|dice|decir|mencion(?:e|o|aste|amos|ado)|coment(?:e|o|aste|amos|ado)|discut(?:imos|ido)"
    r"|trat(?:amos|ado)|temas?|asuntos?|cosas?|paso|pasado|ocurri(?:o|do)|recuerd(?:as|a|o|ame)|recordar|resum(?:en|e|eme"
    r"|ir)|dame|lista|muestra(?:me)?|anot(?:e|o|ado)|aprend(?:i|io|iste|ido)|sesion(?:es)?|entre|cont(?:e|o|aste|amos"
    r"|ado)|pregunt(?:e|o|aste))\b",
    "pt": r"\b(?:fal(?:amos|ei|ou|aste|ado|ar)|convers(?:amos|as?|ado)|discut(?:imos|ido)|diss(?:e|este|emos)|dito|dizer"
    r"|mencion(?:ei|ou|aste|amos|ado)|coment(?:ei|ou|aste|amos|ado)|trat(?:amos|ado)|temas?|assuntos?|coisas?|aconteceu"
    r"|passou|lembr(?:a|as|o|ar)|recordar?|resum(?:o|a|e|ir)|liste|mostr[ae]|anot(?:ei|ou|ado)|aprend(?:i|eu|ido)"
    r"|sess(?:ao|oes)|entre|cont(?:ei|ou|aste|amos|ado)|pergunt(?:ei|ou|aste))\b",
    "it": r"\b(?:parl(?:ato|ammo|avamo|ai|are|iamo)|convers(?:azioni|azione|ato)|discuss(?:o|ioni|ione)|discutemmo"
    r"|chiacchier(?:ato|e)|detto|dissi|dire|dici|menzionato|raccontat[oaie]|argoment[oi]|temi|tema|cos[ae]|successo"
    r"|accaduto|ricord[aio]|ricordi|riassunto|riassumi|riepilog[oa]|elenca|mostra(?:mi)?|annotato|imparato|session[ei]"
    r"|tra|chat|chiesto)\b",
    "nl": r"\b(?:bespr(?:aken|eken)|besproken|gepraat|praat|praten|praatten|spraken|gesproken|sprak|gezegd|zeiden|zei|zeg"
    r"|zeggen|genoemd|vertel(?:d|de|den|len)?|onderwerpen?|dingen|zaken|gebeurde?n?|herinner|samenvatting|vat|samen"
    r"|overzicht|lijst|toon|gesprek(?:ken)?|gehad|sessies?|chats?|tussen|geleerd|genoteerd|gevraagd|ging|alles)\b",
    CHINESE: "聊|谈|说|讲|讨论|提到|提及|告诉|对话|会话|谈话|聊天|交流|话题|内容|事情|事|发生|记得|记住|回忆|总结|概括|回顾"
    "|列出|问|记录|学到|之间|到|至|从|在|天|日|都|些|关于|时候|时|吧|我们|咱们|你们|一下|请|来|下",
    JAPANESE: "話し?合|話題|話|会話|言|述べ|議論|相談|教え|伝え|聞|質問|内容|出来事|起き|起こ|覚え|思い出|まとめ|要約"
    "|振り返|一覧|記録|学|間|何|私|僕|君|時|方|全部|事|下さい|頃",
})  # fmt: skip
"""What a query has besides a time when it only asks what was said or happened then. Stop words are not in it."""

_ABOUT = {
    ENGLISH: "about|on|regarding|concerning|around",
    "de": "uber|zum?|zur|wegen|von",
    "fr": "sur|concernant|a propos|au sujet|de",
    "es": "sobre|acerca|de",
    "pt": "sobre|acerca|de",
    "it": "su|sul|sulla|riguardo|di",
    "nl": "over|van",
}
"""Before what a conversation is about. One that is known by that is not known by its position."""


def _placed(patterns: Mapping[str, str]) -> Mapping[str, re.Pattern[str]]:
    about = {language: rf"(?! (?:{words}) \S)" for language, words in _ABOUT.items()}
    return _compiled({language: f"(?:{one}){about.get(language, '')}" for language, one in patterns.items()})


_TALKED = "(?:talk|spoke|chat|met|discuss)\\w*"
_NOUN = "(?:session|conversation|chat|discussion)"
_OUR = "(?:our|my|your|the|this|that)"

LAST = _placed({
    ENGLISH: rf"\b(?:{_OUR} (?:very )?)?(?:last|latest|most recent) {_NOUN}\b(?! (?:with|of|at|for"
    rf"|before)\b)"
    rf"|\b(?:the )?last time (?:that )?(?:we|you and i|i) {_TALKED}\b(?: to (?:each other|you))?",
    "de": r"\b(?:(?:unser|dein|mein|der|die|das|den|dem)\w* )?(?:letzte|vorige|jungste)[nsrm]? (?:gesprach|unterhaltung"
    r"|sitzung|chat|diskussion)\b|\bals wir (?:uns )?zuletzt (?:gesprochen|unterhalten|geredet)(?: haben)?\b",
    "fr": r"\b(?:(?:notre|la|ta|ma) )?derniere (?:conversation|discussion|session|seance)\b|\b(?:notre"
    r"|la) (?:conversation|discussion|session|seance) precedente\b|\bla derniere fois qu(?:e nous avons|'on a) (?:parle"
    r"|discute)\b",
    "es": r"\b(?:(?:nuestra|la|tu|mi) )?(?:ultima|anterior) (?:conversacion|charla|sesion)\b|\b(?:nuestra"
    r"|la) (?:conversacion|charla|sesion) (?:anterior|pasada)\b|\bla ultima vez que hablamos\b",
    "pt": r"\b(?:(?:n?[oa]s?s?[ao]?|minha|tua) )?ultima (?:conversa|sessao|discussao)\b|\b(?:nossa|a) (?:conversa"
    r"|sessao) (?:anterior|passada)\b|\b(?:n?a )?ultima vez que (?:falamos|conversamos)\b",
    "it": r"\b(?:(?:nostra|la|tua|mia|nell|nella) ?)?(?:ultima|scorsa|precedente) (?:conversazione|sessione|chat"
    r"|discussione)\b|\bl'ultima volta che (?:abbiamo|ci siamo) (?:parlato|sentiti)\b|\bl'ultima (?:conversazione"
    r"|sessione|chat)\b",
    "nl": r"\b(?:(?:ons|onze|het|de|mijn) )?(?:laatste|vorige?) (?:gesprek|sessie|chat|discussie)\b|\bde (?:laatste"
    r"|vorige) keer dat we (?:spraken|praatten)\b",
    CHINESE: "上(?:一)?次(?:的)?(?:对话|会话|谈话|聊天|交流|讨论)|最近(?:的)?一次(?:的)?(?:对话|会话|谈话|聊天|交流|讨论)"
    "|我们上(?:一)?次",
    JAPANESE: "(?:前回|最後|この前|先日)(?:の|に)?(?:会話|話し合い|チャット|セッション|話した)",
})  # fmt: skip
"""The last conversation."""
LAST_TIME = _compiled({
    ENGLISH: rf"\b(?:the )?(?:last|previous) time\b|\b(?:{_OUR} )?(?:previous|prior) {_NOUN}\b",
    "de": r"\b(?:das )?(?:letzte[ns]?|vorige[ns]?) mal\b|\bzuletzt\b",
    "fr": r"\bla derniere fois\b",
    "es": r"\bla (?:ultima vez|vez pasada)\b",
    "pt": r"\b(?:d?n?a )?ultima vez\b",
    "it": r"\bl'ultima volta\b|\bla (?:scorsa volta|volta scorsa)\b",
    "nl": r"\b(?:de )?(?:vorige|laatste) keer\b",
    CHINESE: "上(?:一)?次",
    JAPANESE: "前回|この前",
})  # fmt: skip
"""The last conversation, in a query about nothing else: "the last time" of anything else is another, and what somebody looks
for in "our previous chat" may be in any."""
FIRST = _placed({
    ENGLISH: rf"\b(?:{_OUR} (?:very )?)?(?:first|initial) {_NOUN}\b(?! (?:with|of|at|for)\b)"
    rf"|\bthe first time (?:that )?(?:we|you and i|i) {_TALKED}\b(?: to (?:each other|you))?",
    "de": r"\b(?:(?:unser|dein|mein|der|die|das|den|dem)\w* )?erste[nsrm]? (?:gesprach|unterhaltung|sitzung|chat"
    r"|diskussion)\b",
    "fr": r"\b(?:(?:notre|la|ta|ma) )?premiere (?:conversation|discussion|session|seance)\b",
    "es": r"\b(?:(?:nuestra|la|tu|mi) )?primera (?:conversacion|charla|sesion)\b",
    "pt": r"\b(?:(?:nossa|a|na|minha|tua) )?primeira (?:conversa|sessao|discussao)\b",
    "it": r"\b(?:(?:nostra|la|tua|mia|nella) )?prima (?:conversazione|sessione|chat|discussione)\b",
    "nl": r"\b(?:(?:ons|onze|het|de|mijn) )?eerste (?:gesprek|sessie|chat|discussie)\b",
    CHINESE: "(?:第一|首)次(?:的)?(?:对话|会话|谈话|聊天|交流|讨论)",
    JAPANESE: "(?:最初|初回|1回目|一回目)(?:の|に)?(?:会話|話し合い|チャット|セッション|話した)",
})  # fmt: skip
"""The first conversation."""
