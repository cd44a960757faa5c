"""Dates in other languages, rewritten in English, which `recall.times.dates` reads.

German, French, Spanish, Portuguese, Italian, Dutch, Chinese and Japanese: names of months and weekdays, relative dates, and
numeric ones in the order of day, month and year. The rest stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from retain.memory.recall.words import fold

_MONTHS = "january february march april may june july august september october november december".split()
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_NEAR = ("day before yesterday", "yesterday", "today", "tomorrow", "day after tomorrow")
_UNITS = ("day", "week", "month", "year", "hour")


@dataclass(frozen=True, slots=True)
class _Names:
    """A language's names, folded, in the order of the English ones. Alternatives are separated by "|".

    ago, lasting: patterns with {n} and {u} for a number and a unit. past, current, coming: with {x} for a unit or a weekday.
    month: words that precede the name of a month.
    """

    months: str
    weekdays: str
    near: tuple[str, ...]
    units: tuple[str, ...]
    numbers: str
    ago: str
    lasting: str
    past: str
    current: str
    coming: str
    month: str
    since: str


_LATIN: Mapping[str, _Names] = {
    "de": _Names(
        "januar|janner februar|feber marz april mai juni juli august september oktober november dezember",
        "montag dienstag mittwoch donnerstag freitag samstag|sonnabend sonntag",
        ("vorgestern", "gestern", "heute", "(?<!am )(?<!jeden )(?<!heute )morgen", "ubermorgen"),
        ("tage?n?", "wochen?", "monate?n?|monats", "jahre?n?", "stunden?"),
        "ein(?:em|er|en)? zwei drei vier funf sechs sieben acht neun zehn elf zwolf",
        "vor {n} {u}", "(?:in )?den letzten {n} {u}", "(?:letzte[nsrm]?|vorige[nsrm]?|vergangene[nsrm]?) {x}",
        "diese[nsrm]? {x}", "(?:nachste[nsrm]?|kommende[nsrm]?) {x}", "(?:im|seit) ", "seit",
    ),
    "fr": _Names(
        "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
        "lundi mardi mercredi jeudi vendredi samedi dimanche",
        ("avant-hier", "hier", "aujourd'hui", "demain", "apres-demain"),
        ("jours?|journees?", "semaines?", "mois", "ans?|annees?", "heures?"),
        "une? deux trois quatre cinq six sept huit neuf dix onze douze",
        "il y a {n} {u}", "(?:ces|les) {n} dernie(?:r|re)s {u}", "{x} (?:derniere?|passee?)",
        "(?:ce|cet|cette) {x}", "{x} prochaine?", "(?:en|depuis|au mois de) ", "depuis",
    ),
    "es": _Names(
        "enero febrero marzo abril mayo junio julio agosto septiembre|setiembre octubre noviembre diciembre",
        "lunes martes miercoles jueves viernes sabado domingo",
        ("anteayer|antes de ayer", "ayer", "hoy", "(?<!la )(?<!de )manana", "pasado manana"),
        ("dias?", "semanas?", "mes(?:es)?", "anos?", "horas?"),
        "una?|un dos tres cuatro cinco seis siete ocho nueve diez once doce",
        "hace {n} {u}", "l[oa]s ultim[oa]s {n} {u}", "{x} pasad[oa]", "est[ea] {x}",
        "(?:{x} que viene|proxim[oa] {x})", "(?:en|desde) ", "desde",
    ),
    "pt": _Names(
        "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        "segunda-feira|segunda terca-feira|terca quarta-feira|quarta quinta-feira|quinta sexta-feira|sexta sabado domingo",
        ("anteontem|antes de ontem", "ontem", "hoje", "amanha", "depois de amanha"),
        ("dias?", "semanas?", "mes(?:es)?", "anos?", "horas?"),
        "uma?|um dois|duas tres quatro cinco seis sete oito nove dez onze doze",
        "(?:ha|faz) {n} {u}(?: atras)?;{n} {u} atras", "(?:n?[oa]s) ultim[oa]s {n} {u}", "(?:{x} passad[oa]|ultim[oa] {x})",
        "(?:n?est[ea]) {x}", "(?:{x} que vem|proxim[oa] {x})", "(?:em|desde) ", "desde",
    ),
    "it": _Names(
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
        "lunedi martedi mercoledi giovedi venerdi sabato domenica",
        ("l'altro ieri|ieri l'altro|avantieri", "ieri", "oggi", "domani", "dopodomani"),
        ("giorn[oi]", "settiman[ae]", "mes[ei]", "ann[oi]", "or[ae]"),
        "un[oa]?|un due tre quattro cinque sei sette otto nove dieci undici dodici",
        "{n} {u} fa", "(?:ne)?gli ultimi {n} {u};le ultime {n} {u}", "(?:{x} scors[oa]|scors[oa] {x}|{x} passat[oa])",
        "quest[oa'] ?{x}", "(?:{x} prossim[oa]|prossim[oa] {x})", "(?:a|in|da) ", "(?:da|dal)",
    ),
    "nl": _Names(
        "januari februari maart april mei juni juli augustus september oktober november december",
        "maandag dinsdag woensdag donderdag vrijdag zaterdag zondag",
        ("eergisteren", "gisteren", "vandaag", "morgen", "overmorgen"),
        ("dag(?:en)?", "we(?:ek|ken)", "maand(?:en)?", "ja(?:ar|ren)", "u(?:ur|ren)"),
        "een twee drie vier vijf zes zeven acht negen tien elf twaalf",
        "{n} {u} geleden", "(?:in )?de (?:laatste|afgelopen) {n} {u}", "(?:vorige?|afgelopen) {x}", "(?:deze|dit) {x}",
        "volgende? {x}", "(?:in|sinds) ", "sinds",
    ),
}  # fmt: skip
_ARTICLE = "(?:le |la |el |il |los |las |o |a |de |het |die |den |der |das |l'|am |op |on |na |no |nel |nella )?"
_DAY_FIRST = re.compile(r"\b(\d{1,2})[/-](\d{1,2})[/-]((?:19|20)\d\d)\b")
_CJK = re.compile("[\u3041-\u30fa\u4e00-\u9fff]")
_DIGITS = {digit: number for number, digit in enumerate("一二三四五六七八九十", start=1)} | {"两": 2, "兩": 2}
_NUMBER = "(\\d{1,3}|十[一二]?|[一二两兩三四五六七八九])"
_WEEK = "(?:星期|[周週]|[礼禮]拜)"
_EASTERN: tuple[tuple[str, str], ...] = (
    ("大前天|一昨日|おととい|前天", "day before yesterday"), ("昨天|昨日|きのう|昨晚|昨夜", "yesterday"),
    ("今天|今日(?!は$)|きょう", "today"), ("后天|後天|明後日|あさって", "day after tomorrow"),
    ("明天|明日|あした", "tomorrow"),
    *((f"(?:{past})(?:の)?{day}", f"{which} {name}")
      for past, which in (
          (f"上[个個]?{_WEEK}", "last"), (f"下[个個]?{_WEEK}", "next"), (f"[这這本][个個]?{_WEEK}", "this"))
      for day, name in zip("一二三四五六日", _WEEKDAYS, strict=True)),
    *((f"{past}の?{day}曜日?", f"{which} {name}")
      for past, which in (("(?:先週|前の週)", "last"), ("来週", "next"), ("今週", "this"))
      for day, name in zip("月火水木金土日", _WEEKDAYS, strict=True)),
    *((f"{day}曜日", f"on {name}") for day, name in zip("月火水木金土日", _WEEKDAYS, strict=True)),
    *((f"{_WEEK}{day}", f"on {name}") for day, name in zip("一二三四五六日", _WEEKDAYS, strict=True)),
    (f"上[个個]?{_WEEK}|先週", "last week"), ("上[个個]?月|先月", "last month"), ("去年|昨年", "last year"),
    (f"[这這本][个個]?{_WEEK}|今週", "this week"), ("(?:[这這][个個]?|本)月|今月", "this month"), ("今年", "this year"),
    (f"下[个個]?{_WEEK}|来週", "next week"), ("下[个個]?月|来月", "next month"), ("明年|来年", "next year"),
)  # fmt: skip
_COUNTED = (
    ("(?:天|日)", "day"),
    (f"[个個]?(?:{_WEEK}|週間)", "week"),
    ("(?:个|個|か|ヶ|カ|ケ)月", "month"),
    ("年", "year"),
    ("[个個]?(?:小[时時]|時間)", "hour"),
)


def in_english(text: str, code: str | None) -> str:
    """Return the text with its dates in English. code: of its language, None when that does not show."""
    if _CJK.search(text):
        return _eastern(text)
    if code is not None and code not in _LATIN:
        return text
    folded = " ".join(fold(text).replace("\u2019", "'").split())
    for language in _LATIN if code is None else (code,):
        rewritten = folded
        for pattern, put in _rules(language):
            rewritten = pattern.sub(put, rewritten)
        if rewritten != folded:
            return rewritten if code is None else _DAY_FIRST.sub(r"\1.\2.\3", rewritten)
    return text if code is None else _DAY_FIRST.sub(r"\1.\2.\3", text)


def _always(text: str) -> Callable[[re.Match[str]], str]:
    return lambda _: text


@lru_cache(maxsize=8)
def _rules(code: str) -> tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]:
    """Return what is replaced in a language, in order: longer expressions before their parts."""
    names = _LATIN[code]
    units, weekdays, months = (*names.units,), names.weekdays.split(), names.months.split()
    any_of = {"u": units, "d": weekdays, "m": months}
    one = {kind: "|".join(of) for kind, of in any_of.items()}
    number = rf"(?P<n>\d{{1,3}}|{'|'.join(names.numbers.split())})"

    def english(found: str, of: tuple[str, ...] | list[str], into: tuple[str, ...] | list[str]) -> str:
        return next(name for pattern, name in zip(of, into, strict=True) if re.fullmatch(pattern, found))

    def count(found: str) -> str:
        return found if found.isdecimal() else str(next(
            at for at, word in enumerate(names.numbers.split(), start=1) if re.fullmatch(word, found)
        ))  # fmt: skip

    def unit(found: str) -> str:
        return english(found, units, _UNITS)

    def which(word: str) -> Callable[[re.Match[str]], str]:
        def put(match: re.Match[str]) -> str:
            found = next(group for group in match.groupdict().values() if group)
            name = (
                unit(found) if any(re.fullmatch(one, found) for one in units) else english(found, weekdays, _WEEKDAYS)
            )
            return f"{word} {name}"

        return put

    def month(match: re.Match[str]) -> str:
        day, year = match.group("day"), match.group("year")
        name = english(match.group("m"), months, _MONTHS)
        since = "since " if re.match(rf"(?:{names.since})\b", match[0]) else "" if day or year else "in "
        return since + " ".join(part for part in (day, name, year) if part)

    def compiled(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])")

    def either(pattern: str) -> str:
        """Put the units and weekdays into a pattern, which may name them several times."""
        first, *others = pattern.split("{x}")
        return first + "".join(f"(?P<x{n}>{one['u']}|{one['d']}){rest}" for n, rest in enumerate(others))

    def counted(pattern: str, shown: str) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        def put(match: re.Match[str]) -> str:
            return shown.format(n=count(match["n"]), u=unit(match["u"]))

        return [
            (compiled(part.replace("{n}", number).replace("{u}", f"(?P<u>{one['u']})")), put)
            for part in pattern.split(";")
        ]

    return (
        *counted(names.ago, "{n} {u}s ago"),
        *counted(names.lasting, "last {n} {u}s"),
        (compiled(_ARTICLE + either(names.past)), which("last")),
        (compiled(_ARTICLE + either(names.coming)), which("next")),
        (compiled(_ARTICLE + either(names.current)), which("this")),
        (compiled(
            rf"(?:{names.since} )?(?:le |el |il |o |am |den |dem |op |a )?(?P<day>\d{{1,2}})(?:\.|er|o|°)? ?(?:de |di )?"
            rf"(?P<m>{one['m']})(?:,? (?:de |del |do )?(?P<year>(?:19|20)\d\d))?"
        ), month),
        (compiled(rf"(?:{names.month})?(?P<day>)(?P<m>{one['m']}),? (?:de |del |do )?(?P<year>(?:19|20)\d\d)"), month),
        (compiled(rf"(?:{names.month})(?P<day>)(?P<m>{one['m']})(?P<year>)"), month),
        *((compiled(pattern), _always(name)) for pattern, name in zip(names.near, _NEAR, strict=True)),
        *((compiled(f"{_ARTICLE}(?:{day})"), _always(f"on {name}"))
          for day, name in zip(weekdays, _WEEKDAYS, strict=True)),
        (compiled(rf"(?:{names.since}) (?P<y>(?:19|20)\d\d)"), lambda match: f"since {match['y']}"),
        (compiled(r"(?:im jahr|en|em|nel|in) (?P<y>(?:19|20)\d\d)"), lambda match: f"in {match['y']}"),
    )  # fmt: skip


def _eastern(text: str) -> str:
    """Return a Chinese or Japanese text with its dates in English, between spaces."""
    text = re.sub(r"(\d{4})年(\d{1,2})月(\d{1,2})[日号號]", lambda m: f" {m[1]}-{int(m[2]):02}-{int(m[3]):02} ", text)
    text = re.sub(r"(\d{4})年(\d{1,2})月", lambda m: f" {m[1]}-{int(m[2]):02} ", text)
    for unit, name in _COUNTED:
        text = re.sub(f"{_NUMBER}{unit}(?:以)?前", _many("{} " + name + "s ago"), text)
        text = re.sub(f"(?:最近|过去|過去|この){_NUMBER}{unit}", _many("last {} " + name + "s"), text)
    text = re.sub(rf"{_NUMBER}月{_NUMBER}[日号號]", lambda m: f" {_value(m[2])} {_month(m[1])} ", text)
    text = re.sub(rf"{_NUMBER}月(?!曜)", lambda m: f" in {_month(m[1])} ", text)
    text = re.sub(r"((?:19|20)\d\d)年", r" in \1 ", text)
    for pattern, name in _EASTERN:
        text = re.sub(pattern, f" {name} ", text)
    return text


def _many(shown: str) -> Callable[[re.Match[str]], str]:
    return lambda match: f" {shown.format(_value(match[1]))} "


def _value(number: str) -> int:
    return int(number) if number.isdecimal() else sum(_DIGITS[digit] for digit in number)


def _month(number: str) -> str:
    value = _value(number)
    return _MONTHS[value - 1] if 1 <= value <= 12 else "undated"
