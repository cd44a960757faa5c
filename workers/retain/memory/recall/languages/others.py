"""Frequent words and letters of languages without stems here, so that none of them is taken for one that has stems.

They share many words with those that have: Romanian has "de", "la" and "un", Vietnamese "la" and "con", Swedish "i" and
"den". Taken for another language from text to text, their words would be indexed as of several languages, and not be
found. The words are folded, and stop words of English have no effect among them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

OTHERS: Mapping[str, frozenset[str]] = {
    language: frozenset(words.split())
    for language, words in {
        "ca": """
            a aixo als amb aquest aquesta com de dels el els en es ha han hi i la les mes molt no on per quan
            que qui ser seu seva son tambe te un una va
        """,
        "cs": """
            a aby ale byl byla bylo co ich jak jako je jeho jejich jeste jsou kde kdo kdy kolik ktera ktere
            ktery na nebo od po podle pokud pri pro se tak uz v za ze
        """,
        "da": """
            af at blev den det efter eller en er et fra har havde hun hvad hvilken hvor hvornar ikke jeg kan
            mange med meget mellem men nar og om pa skal som til ved vi
        """,
        "fi": """
            ei eika etta ha han hanen ja joka jos jotka kuin kuinka kuka kun mihin mika milloin missa mista
            mita miten mutta myos niin ole oli olivat ollut ovat se sen sita tai tama taman vai vain
        """,
        "hr": "bi bila bio biti gdje ili iz je kada kako kao koja koji na od po sa samo se sto su tko u za",
        "hu": """
            a az azt csak de egy es ez ezt ha hany hogy hol kell ki lesz mar meg mennyi mi mikor milyen minden
            mint nem sok utan vagy van volt
        """,
        "id": """
            ada adalah akan apa atau bagaimana berapa bisa dalam dan dari dengan di ini itu juga kami kapan
            karena ke lebih mana mereka oleh pada saya siapa sudah telah tidak untuk yang
        """,
        "nb": """
            at av ble den det eller en er et etter fra hadde har hun hva hvilken hvor ikke jeg kan mange med
            mellom men mye nar og om pa skal som til ved vi
        """,
        "pl": """
            ale by byc byl byla co czy dla gdzie i ich ile jak jego jej jest kiedy kto ktora ktore ktory lub
            na nie od oraz po przed przez przy sa sie tylko w z za ze
        """,
        "ro": """
            a aceasta acest al ale au cand care cat cate cati ce cine cu cum daca dar de despre din dupa ei
            era este fi fie fost in la lui mai nu o pe pentru prin sa sau si sunt un unde
        """,
        "sk": """
            aby ako ale alebo bol bola bolo co ich je jeho kde kedy kolko kto ktora ktore ktory na od po podla
            pre sa su tak uz v za
        """,
        "sv": """
            ar att av blev de dem den det detta du efter ett finns fran ha hade har hon hur inte jag kan man
            manga med mellan men mycket nar och om pa sa ska skall som till under vad vi vilka vilken vilket
        """,
        "tr": """
            ama bir bu cok da daha de degil en gibi hangi icin ile kac kadar kim mi mu mı nasıl ne nerede olan
            olarak oldu sonra tarafından var ve veya ya yok zaman
        """,
        "vi": """
            ai bao bi cac co cua gi hay khi khong la mot nam nao nay nguoi nhieu nhu nhung o ra sao tai thi
            trong tu va vao ve voi đa đen đuoc
        """,
    }.items()
}
"""By language: Catalan, Czech, Danish, Finnish, Croatian, Hungarian, Indonesian, Norwegian, Polish, Romanian, Slovak,
Swedish, Turkish, Vietnamese.
"""
LETTERS_OF_OTHERS: Mapping[str, re.Pattern[str]] = {
    language: re.compile(pattern)
    for language, pattern in {
        "da": "[åøæ]",
        "fi": "ää|yy|öö|[lsntk]ä\\b|\\w(?:aa|ssa|lla|ksi|sta|lle|inen)\\b",
        "nb": "[åøæ]",
        "sv": "å",
    }.items()
}
"""Letters and parts of words of those whose other letters are those of German."""
