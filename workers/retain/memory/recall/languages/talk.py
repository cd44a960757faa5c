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
    ENGLISH: r"\b(?:discuss\w*|talk\w*|chat\w*|sa(?:y|ys|id|ying)|speak\w*|spoken?|tells?|told|mention\w*"
    r"|convers\w*|sessions?"
    r"|topics?|subjects?|matters?|things?|sorts?|kinds?|stuff|anything|something|everything|happen\w*|going|gone"
    r"|went|came"
    r"|comes?|cover\w*|br(?:ing|ought)|remember|remind|recall\w*|summar\w*|recap\w*|overview|give|list|show|please|know"
    r"|ask\w*|note[sd]?|learn\w*|stored?|record\w*|memor\w+|between|earlier|past|content|details?|main|points?|whole|full)\b",
    "de": r"\b(?:woruber|\w*sproche\w*|\w*sprach\w*|sprech\w*|\w*redet\w*|reden|unterh\w+|gesagt|sagt\w*|sagen|\w*zahl\w*"
    r"|erwahn\w*"
    r"|themen?|thema|dinge?|sachen?|passiert\w*|geschah|geschehen|los|erinner\w*|zusammenfass\w*|fass\w*|zusammen"
    r"|uberblick"
    r"|liste|zeig\w*|bitte|chat\w*|gesprache?s?|gelernt|notiert|zwischen|alles|ging|gefragt|fragt\w*)\b",
    "fr": r"\b(?:discut\w*|discussions?|parl\w*|dit|disais|dire|dis|mentionn\w*|evoqu\w*|abord\w*|racont\w*"
    r"|convers\w*|sujets?"
    r"|themes?|choses?|passe|arrive|rappel\w*|souvien\w*|resum\w*|recapitul\w*|apercu|donne|liste|montre|note"
    r"|appris|seances?"
    r"|sessions?|entre|echang\w*|demand\w*)\b",
    "es": r"\b(?:habl\w*|conversa\w*|charl\w*|dij\w*|dicho|dice|decir|mencion\w*|coment\w*|discut\w*|trat\w*|temas?"
    r"|asuntos?"
    r"|cosas?|paso|pasado|ocurr\w*|recuerd\w*|recordar\w*|resum\w*|dame|lista|muestra\w*|anot\w*|aprend\w*"
    r"|sesion\w*|entre"
    r"|cont\w*|pregunt\w*)\b",
    "pt": r"\b(?:fal\w*|convers\w*|discut\w*|diss\w*|dito|dizer|mencion\w*|coment\w*|trat\w*|temas?|assuntos?|coisas?"
    r"|aconteceu|acontec\w*|passou|lembr\w*|recorda\w*|resum\w*|liste|mostr\w*|anot\w*|aprend\w*|sess\w+|entre|cont\w*"
    r"|pergunt\w*)\b",
    "it": r"\b(?:parl\w*|convers\w*|discus\w*|discut\w*|chiacchier\w*|detto|dissi|dire|dici|menzion\w*|raccont\w*"
    r"|argoment\w*"
    r"|temi|tema|cose?|successo|accadut\w*|ricord\w*|riassu\w*|riepilog\w*|elenca|mostra\w*|annotat\w*|imparat\w*"
    r"|session\w*"
    r"|tra|chat\w*|chiest\w*)\b",
    "nl": r"\b(?:bespr\w*|besprok\w*|gepraat|praat\w*|praten|spraken|gesprok\w*|sprak\w*|gezegd|zei\w*|zeg\w*"
    r"|genoemd|vertel\w*"
    r"|onderwerp\w*|dingen|zaken|gebeur\w*|herinner\w*|samenvat\w*|vat|samen|overzicht|lijst|toon|gesprek\w*|gehad"
    r"|sessies?"
    r"|chat\w*|tussen|geleerd|genoteerd|gevraagd|ging|alles)\b",
    CHINESE: "聊|谈|说|讲|讨论|提到|提及|告诉|对话|会话|谈话|聊天|交流|话题|内容|事情|事|发生|记得|记住|回忆|总结|概括|回顾"
    "|列出|问|记录|学到|之间|到|至|从|在|天|日|都|些|关于|时候|时|吧|我们|咱们|你们|一下|请|来|下",
    JAPANESE: "話し?合|話題|話|会話|言|述べ|議論|相談|教え|伝え|聞|質問|内容|出来事|起き|起こ|覚え|思い出|まとめ|要約"
    "|振り返|一覧|記録|学|間|何|私|僕|君|時|方|全部|事|下さい|頃",
})  # fmt: skip
"""What a query has besides a time when it only asks what was said or happened then. Stop words are not in it."""

_TALKED = "(?:talk|spoke|chat|met|discuss)\\w*"
_NOUN = "(?:session|conversation|chat|discussion)"
_OUR = "(?:our|my|your|the|this|that)"

LAST = _compiled({
    ENGLISH: rf"\b(?:{_OUR} (?:very )?)?(?:last|latest|previous|most recent|prior) {_NOUN}\b(?! (?:with|of|at|for"
    rf"|before)\b)"
    rf"|\b(?:the )?last time (?:that )?(?:we|you and i|i) {_TALKED}\b(?: to (?:each other|you))?",
    "de": r"\b(?:(?:unser|dein|mein|der|die|das|den|dem)\w* )?(?:letzte|vorige|jungste)[nsrm]? (?:gesprach"
    r"|unterhaltung|sitzung"
    r"|chat|diskussion)\b|\bals wir (?:uns )?zuletzt (?:gesprochen|unterhalten|geredet)(?: haben)?\b",
    "fr": r"\b(?:(?:notre|la|ta|ma) )?derniere (?:conversation|discussion|session|seance)\b|\b(?:notre"
    r"|la) (?:conversation"
    r"|discussion|session|seance) precedente\b|\bla derniere fois qu(?:e nous avons|'on a) (?:parle|discute)\b",
    "es": r"\b(?:(?:nuestra|la|tu|mi) )?(?:ultima|anterior) (?:conversacion|charla|sesion)\b|\b(?:nuestra"
    r"|la) (?:conversacion"
    r"|charla|sesion) (?:anterior|pasada)\b|\bla ultima vez que hablamos\b",
    "pt": r"\b(?:(?:n?[oa]s?s?[ao]?|minha|tua) )?ultima (?:conversa|sessao|discussao)\b|\b(?:nossa|a) (?:conversa"
    r"|sessao)"
    r" (?:anterior|passada)\b|\b(?:n?a )?ultima vez que (?:falamos|conversamos)\b",
    "it": r"\b(?:(?:nostra|la|tua|mia|nell|nella) ?)?(?:ultima|scorsa|precedente) (?:conversazione|sessione|chat"
    r"|discussione)\b"
    r"|\bl'ultima volta che (?:abbiamo|ci siamo) (?:parlato|sentiti)\b|\bl'ultima (?:conversazione|sessione|chat)\b",
    "nl": r"\b(?:(?:ons|onze|het|de|mijn) )?(?:laatste|vorige?) (?:gesprek|sessie|chat|discussie)\b"
    r"|\bde (?:laatste|vorige) keer dat we (?:spraken|praatten)\b",
    CHINESE: "上(?:一)?次(?:的)?(?:对话|会话|谈话|聊天|交流|讨论)|最近(?:的)?一次(?:的)?(?:对话|会话|谈话|聊天|交流|讨论)"
    "|我们上(?:一)?次",
    JAPANESE: "(?:前回|最後|この前|先日)(?:の|に)?(?:会話|話し合い|チャット|セッション|話した)",
})  # fmt: skip
"""The last conversation."""
LAST_TIME = _compiled({
    ENGLISH: r"\b(?:the )?(?:last|previous) time\b",
    "de": r"\b(?:das )?(?:letzte[ns]?|vorige[ns]?) mal\b|\bzuletzt\b",
    "fr": r"\bla derniere fois\b",
    "es": r"\bla (?:ultima vez|vez pasada)\b",
    "pt": r"\b(?:d?n?a )?ultima vez\b",
    "it": r"\bl'ultima volta\b|\bla (?:scorsa volta|volta scorsa)\b",
    "nl": r"\b(?:de )?(?:vorige|laatste) keer\b",
    CHINESE: "上(?:一)?次",
    JAPANESE: "前回|この前",
})  # fmt: skip
"""The last conversation, in a query about nothing else: "the last time" of anything else is another."""
FIRST = _compiled({
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
