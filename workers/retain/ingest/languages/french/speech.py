"""How people speak about themselves in French."""

from __future__ import annotations

import re
from collections.abc import Iterator

from retain.ingest.languages.language import Ending, Expression, Speech, Things

_CONJUNCTION = "(?:et|mais|donc|car|parce que|puisque|ou|puis|alors|aussi|comme|or|sauf que|en plus|de plus)"
_SUBJECT = (
    r"(?:je\b|j'|m(?:on|a|es)\b|nous\b|n(?:otre|os)\b|on\b|il\b|elle\b|ils\b|elles\b|c'|ce\b|ça\b|tu\b|t'|vous\b)"
)

SPEECH = Speech(
    personal=Expression(
        r"\b(?:j'|(?:je|moi|mon|ma|mes|nous|notre|nos|toujours|jamais|dorénavant|désormais|à l'avenir|"
        r"à partir de maintenant)\b|(?:rappelle|rappelez|appelle|appelez|tutoie|tutoyez|vouvoie|vouvoyez)[- ])"
    ),
    asking=Expression(
        r"(?:(?:et|mais|alors|donc|ou|ok|bon|salut|bonjour),? )*(?:qui|que|qu'|quoi|quand|où|pourquoi|comment|combien|"
        r"quel\w*|est-ce|es-tu|êtes-vous|as-tu|avez-vous|peux-tu|pouvez-vous|puis-je|pourrais-tu|pourriez-vous|sais-tu|"
        r"savez-vous|dois-je|suis-je|ai-je|veux-tu|voulez-vous)\b"
    ),
    hedged=Expression(
        r"\b(?:si(?! (?:bien|belle|beau|bon)\b)|s'ils?(?! (?:te|vous) pla)|à moins que|peut-être|peut être|"
        r"probablement|sans doute|éventuellement|apparemment|"
        r"supposons|suppose|imagine\w*|imaginons|admettons|espère|espérons|souhaite|souhaiterais|aimerais|aimerait|voudrais|"
        r"pourrais|pourrait|devrais|devrait|serais|serait|aurais|aurait|ferais|vivrais|habiterais|rêve|rêvé|rêvais|"
        r"crois|pense|pensais|croyais|parie|devine|doute|blague\w*|plaisante\w*|plaisanterie|par exemple|p\. ?ex|"
        r"faire semblant|fais semblant|comme si|au cas où|rôle|personnage|roman|paroles|modèle|pas sûre?)\b"
    ),
    reported=Expression(
        r"\b(?:dit|disait|disent|a dit|ont dit|raconte\w*|raconté|demande|demandé|demandait|écrit|selon|d'après|prétend\w*|"
        r"affirme\w*|répond(?:u|it|ait)?|cite|citation|annonce|annoncé|entendu)\b"
    ),
    negated=Expression(
        r"\b(?:ne|n'|pas|jamais|rien|personne|aucune?|ni|sans|non|plus (?:de|du|d')|guère|nulle part)(?:\b|(?<='))"
    ),
    lead=Expression(
        r"(?:(?:salut|bonjour|bonsoir|coucou|hello|hey|cher \w+|chère \w+|oui|ouais|non|si|ok|okay|d'accord|bon|bien|"
        r"bien sûr|ben|"
        r"ah|oh|eh bien|alors|donc|et|mais|en fait|au fait|d'ailleurs|honnêtement|franchement|vraiment|moi|cool|super|"
        r"génial|merci|désolée?|pardon|enchantée?|pour info|à propos|lol|haha|sinon|aussi|compris|exact|exactement|pareil|"
        r"tant mieux)\b[\s,.!:;-]*)+"
    ),
    new_subject=Expression(
        rf"(?:\s*[,;:]|\s+[.-])?\s+(?:{_CONJUNCTION} )*(?={_SUBJECT}|(?:rappelle|rappelez|appelle|appelez)-|"
        r"(?:dorénavant|désormais|à l'avenir)\b)"
    ),
    joined=Expression(rf"[,;:.]|\s-\s|\b{_CONJUNCTION}\s*$"),
)

THINGS = Things(
    ends=(
        Expression(
            r"\s*(?:[;:()]|\s-\s|\s\.\s|\b\w+-(?:tu|vous)\b|,? \b(?:parce que|parce qu'|car|puisque|mais|quand|"
            r"lorsque|lorsqu'|pendant que|comme|"
            r"si|que|qu'|qui|dont|où|bien que|sauf|surtout|notamment|avant|après|jusqu'|depuis|pour que|afin|donc|merci|"
            r"plutôt que|plus que|mieux que|autant que|même si|sans|presque|autant|en tant|et tout$)(?:\b|(?<='))).*$"
        ),
        Expression(r"(?:,| et)(?=[^,]*\b(?:est|sont|était|étaient)\b).*$|, (?=(?:me|m'|te|se|avoir|être)\b).*$"),
        Expression(
            r"(?:,? et|,) (?=(?:je|j'|tu|t'|il|elle|nous|vous|ils|elles|on|c'|ça|ce|mon|ma|mes|suis|ai|est|sont|alors|aussi|"
            r"puis|jamais|toujours|ne|n')(?:\b|(?<='))).*$"
        ),
        Expression(
            r"(?:,? (?:aussi|toujours|beaucoup|énormément|bien|trop|vraiment|également|par-dessus tout|plus que tout|"
            r"le plus|ces temps-ci|"
            r"en ce moment|en général|d'habitude|parfois|de temps en temps|à vrai dire|s'il te plaît|s'il vous plaît|"
            r"svp|stp|merci|tous les jours|tout le temps|non plus|du tout|moi-même|personnellement|d'ailleurs|en fait|"
            r"maintenant|pour le moment|lol|mdr|(?:ha){2,}h?))+$"
        ),
    ),
    none=Expression(
        r"(?:et|ou|mais|cela|ceci|ça|ce|cette|ces|cet|celui|celle|ceux|celles|ci|là|lui|elle|eux|le tien|la tienne|"
        r"ton|ta|tes|votre|vos|leurs?|son|sa|ses|te|t'|vous|tout|tous|toutes|rien|quelque chose|quelqu'un|"
        r"comment|quand|où|pourquoi|quoi|qui|beaucoup|autant|aussi|juste|vraiment|bien|trop|plus|moins|mieux|pas|être|"
        r"une? (?:idée|façon|chose|partie|peu)|(?:les )?(?:deux|choses?|trucs?)$|que|qu'|de|d'|en|tout|la façon|"
        r"l'idée|le fait|à|de penser|penser|savoir|voir|dire)(?:\b|(?<='))"
    ),
    definite=Expression(r"(?!)"),
    pointing=Expression(
        r"\b(?:tu|toi|ton|ta|tes|(?<!-)vous|votre|vos|lui|eux|me|cela|ça|ceci|ce|cet|cette|ces|celui|celle|moi|mon|ma|"
        r"mes|ici|là|y|en (?:faire|manger|avoir)|leurs?|son|sa|ses)\b|\b[mts]'"
    ),
    unfinished=Expression(
        r"(?:^|\s)(?:à|de|du|des|d'|pour|avec|en|dans|sur|par|et|ou|le|la|les|l'|un|une|mon|ma|mes|très|au|aux|ne|pas|"
        r"ce|tout)$"
    ),
    deed_ends=Expression(r"(?:,? (?:parce que|car|puisque|mais|donc) |,? (?:merci|ok|d'accord|svp|stp)$).*$"),
)

AFTER_ENDED = Expression(
    r"\s*(?:$|[.,;:!)(]|-\s|\b(?:et|mais|depuis|parce|car|puisque|maintenant|aujourd'hui|hier|après|suite|non plus|du tout|"
    r"il y a|l'an|l'année|en \d|cette|ce)\b)"
)
"""What may follow the object of a fact that is over."""

_ENDED = Expression(
    r"(?:je )?(?P<me>ne (?:m'|me )|n(?:e |'))(?P<verb>\S+) plus (?!(?:que|qu'|beaucoup|très|trop|autant|vraiment|"
    r"tellement|souvent)\b)(?P<rest>.+)$"
)
_STOPPED = Expression(r"j'ai (?:arrêté|cessé) de (?P<verb>fumer|travailler|vivre|habiter|prendre)\b(?P<rest>.*)$")
_DENIED = Expression(
    r"(?:je )?(?P<me>ne (?:m'|me )|n(?:e |'))(?P<verb>\S+) pas (?!(?:que|qu'|seulement|encore|toujours|vraiment|très|"
    r"trop|tout|si|aussi|sûre?|forcément|souvent|beaucoup|juste|uniquement)\b)(?P<rest>.+)$"
)
_STILL = Expression(r"\b(?:encore|à nouveau|de nouveau|toujours)\b")
_FIRST = {"fumer": "suis fumeur", "travailler": "travaille", "vivre": "vis", "habiter": "habite", "prendre": "prends"}
_VOWEL = re.compile(r"[aeiouyhéèêàâîôûAEIOUYHÉÈÊ]")
_VERB = re.compile(r"^(?P<subject>\{speaker\}|L[ea]s? .+? de \{speaker\}) (?P<verb>s'appelle|[\w']+)")


def endings(clause: str, _sentence: str) -> Iterator[Ending]:
    """Yield what a clause ends or denies: "Je n'habite plus à Rome", "Je ne suis pas végétarienne"."""
    if _STILL.search(clause):
        return
    stopped = _STOPPED.match(clause)
    if stopped is not None:
        yield Ending(_positive(_FIRST[stopped["verb"].casefold()], stopped["rest"]), "ended")
        return
    ended, denied = _ENDED.match(clause), _DENIED.match(clause)
    if ended is not None:
        yield Ending(_positive(ended["verb"], ended["rest"]), "ended")
    elif denied is not None:
        yield Ending(_positive(denied["verb"], denied["rest"]), "denied")


def _positive(verb: str, rest: str) -> str:
    if verb.casefold() == "fume":
        verb, rest = "suis", f"fumeur {rest}"
    return f"j'{verb} {rest}".strip() if _VOWEL.match(verb) else f"je {verb} {rest}".strip()


def ended_phrase(phrase: str) -> str:
    """Return the sentence for a fact that has ended, from a rule's for one that holds."""
    ended, found = _VERB.subn(_no_longer, phrase, count=1)
    return ended if found else f"{phrase} (plus maintenant)"


def _no_longer(found: re.Match[str]) -> str:
    no = "n'" if _VOWEL.match(found["verb"]) else "ne "
    return f"{found['subject']} {no}{found['verb']} plus"
