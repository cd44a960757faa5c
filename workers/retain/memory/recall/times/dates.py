"""Dates in a query, including relative ones, as intervals of time. Pure code, English, UTC, weeks from Monday.

A date is resolved as by a person who asks about the past: "in May" and "on Monday" are the latest that have begun,
"last" is the latest that has ended. Seasons are the meteorological ones of the northern hemisphere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

DAY_MS = 86_400_000
HOUR_MS = 3_600_000
MAX_DATES = 4
"""How many dates of a query are used, in order."""
_LAST_MS = 250_246_627_200_000
"""The start of the year 9900: later times are not resolved, since `date` ends with the year 9999."""

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
           "december")  # fmt: skip
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_PARTS = {name: days for names, days in (
    ("early beginning start", (1, 13)), ("mid middle", (9, 22)), ("late end", (18, 31))
) for name in names.split()}  # fmt: skip
"""The days of a month that its parts mean: as vague as they are, so they overlap."""
_NUMBERS = {word: number for number, word in enumerate(
    "one two three four five six seven eight nine ten eleven twelve".split(), start=1
)} | {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 4}  # fmt: skip

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = r"(?:19|20)\d\d"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
ORDINALS = tuple(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth twenty-first twenty-second twenty-third twenty-fourth"
    " twenty-fifth twenty-sixth twenty-seventh twenty-eighth twenty-ninth thirtieth thirty-first".split()
)
_ORDINAL = f"(?:{'|'.join(reversed(ORDINALS))})"
_COUNT = rf"(?:\d{{1,3}}|(?:a )?(?:couple|few)(?: of)?|{'|'.join(w for w in _NUMBERS if w not in {'couple', 'few'})})"
_UNIT = "(?:minute|hour|day|week|month|year)s?"
_DIRECTED = "(?(before)|(?!))"
"""Matches only after "since" and the like, where a month or year needs no preposition to be a date."""
_WHICH = "(?:last|this|next|past|previous|coming)"


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time in epoch milliseconds: [from_ms, to_ms)."""

    from_ms: int
    to_ms: int

    def __contains__(self, at_ms: int) -> bool:
        return self.from_ms <= at_ms < self.to_ms


def dates(text: str, now_ms: int) -> tuple[Interval, ...]:
    """Return the dates that a text names, resolved against `now_ms`, at most `MAX_DATES`, in order.

    Invalid dates, such as 30 February, are left out. A date after "since" extends to now; for one after "after", the
    interval runs from the end of the date to now; one after "before" or "until" is too vague and is left out. Two dates
    between which "between … and", "to" or "through" stands are one interval, from the beginning of the first to the end of
    the second.
    """
    if not 0 <= now_ms < _LAST_MS:
        return ()
    spaced = " ".join(text.split())
    found: list[Interval] = []
    last: re.Match[str] | None = None
    for match in _ANY.finditer(spaced):
        first, last = last, match
        if first is not None and found and _is_span(spaced, first, match):
            until = _resolved(match, now_ms)
            since = _resolved(first, until[-1].to_ms - 1) if until else []
            if since and since[0].from_ms < until[-1].to_ms and found[-1] in _resolved(first, now_ms):
                found[-1] = Interval(since[0].from_ms, until[-1].to_ms)
                continue
        before = (match.group("before") or "").lower()
        for interval in _resolved(match, now_ms):
            directed = _directed(interval, before, now_ms)
            if directed is not None and directed not in found and len(found) < MAX_DATES:
                found.append(directed)
    return tuple(found)


def without_dates(text: str) -> str:
    """Return the text without the dates that it names."""
    return _ANY.sub(" ", " ".join(text.split()))


def _resolved(match: re.Match[str], now_ms: int) -> list[Interval]:
    name = str(match.lastgroup)
    try:
        return _RESOLVERS[name](match.group(name).lower(), now_ms)
    except (ValueError, OverflowError):  # 30 February; the year 0
        return []


def _is_span(text: str, first: re.Match[str], second: re.Match[str]) -> bool:
    """Return whether two dates that follow each other in a text are the beginning and the end of one span."""
    between = f"{text[first.end() : second.start()]} {second.group('before') or ''}".strip().lower()
    if between == "and":
        return text[: first.start()].lower().endswith("between ")
    return between in {"to", "through", "thru", "until", "till", "-", "\N{EN DASH}"} and not first.group("before")


def _directed(interval: Interval, before: str, now_ms: int) -> Interval | None:
    """Return what a date means after "since", "after" and the like; None if that is too vague or in the future."""
    if before in {"before", "until", "till"}:
        return None
    if before not in {"since", "after"}:
        return interval
    start = interval.from_ms if before == "since" else interval.to_ms
    return Interval(start, now_ms + 1) if start <= now_ms else None


def _today(now_ms: int) -> date:
    return datetime.fromtimestamp(now_ms / 1000, UTC).date()


def _span(first: date, after: date) -> Interval:
    """Return the interval from the beginning of one day to the beginning of another."""
    epoch = date(1970, 1, 1).toordinal()
    return Interval((first.toordinal() - epoch) * DAY_MS, (after.toordinal() - epoch) * DAY_MS)


def _days(first: date, count: int = 1) -> Interval:
    return _span(first, first + timedelta(days=count))


def _month(year: int, month: int) -> Interval:
    """Return a month; numbers above 12 or below 1 are months of later or earlier years."""
    return _months(year, month, 1)


def _months(year: int, month: int, count: int) -> Interval:
    start, end = year * 12 + month - 1, year * 12 + month - 1 + count
    return _span(date(start // 12, start % 12 + 1, 1), date(end // 12, end % 12 + 1, 1))


def _year(year: int) -> Interval:
    return _months(year, 1, 12)


def _number_of_month(name: str) -> int:
    return next(n for n, month in enumerate(_MONTHS, start=1) if month.startswith(name[:3]))


def _count(text: str) -> int:
    """Return the number of a count: digits, a word, "a couple of"."""
    word = next(w for w in (text, *text.split()[::-1]) if w in _NUMBERS or w.isdecimal())
    return int(word) if word.isdecimal() else _NUMBERS[word]


def _latest(of_year: Callable[[int], Interval], which: str, now_ms: int) -> Interval:
    """Return the occurrence of a yearly time that is meant.

    last: the latest that has ended. next: the first that has not begun. this: the current one, else the current year's.
    Otherwise the latest that has begun.
    """
    year = _today(now_ms).year
    around = [of_year(y) for y in range(max(2, year - 8), year + 9) if _exists(of_year, y)]
    if which == "this":
        return next((one for one in around if now_ms in one), of_year(year))
    if which in {"next", "coming"}:
        return next(one for one in around if one.from_ms > now_ms)
    if which in {"last", "past", "previous"}:
        return [one for one in around if one.to_ms <= now_ms][-1]
    return [one for one in around if one.from_ms <= now_ms][-1]


def _exists(of_year: Callable[[int], Interval], year: int) -> bool:
    """Return whether a yearly time exists in a year: 29 February does not in every one."""
    try:
        of_year(year)
    except ValueError:
        return False
    return True


def _iso(text: str, _: int) -> list[Interval]:
    numbers = [int(part) for part in re.split(r"[-/]", text)]
    return [_month(numbers[0], _valid_month(numbers[1])) if len(numbers) == 2 else _days(date(*numbers))]


def _valid_month(month: int) -> int:
    if not 1 <= month <= 12:
        raise ValueError("there is no such month")
    return month


def _numeric(text: str, _: int) -> list[Interval]:
    """Return the day of "3.5.2024", and both readings of "3/5/2024"."""
    first, second, year = (int(part) for part in re.split(r"[./]", text))
    readings = [(second, first)] if "." in text else [(second, first), (first, second)]
    return [_days(date(year, month, day)) for month, day in readings if 1 <= month <= 12]


def _written(text: str, now_ms: int) -> list[Interval]:
    """Return the day of "3 May 2024", "May 3rd", "the third of May", and the month of "May 2024"."""
    month = _number_of_month(re.findall(_MONTH, text)[0])
    years, days = re.findall(rf"\b{_YEAR}\b", text), re.findall(r"\b(\d{1,2})(?:st|nd|rd|th)?\b", text)
    named = re.search(rf"\b{_ORDINAL}\b", text)
    if not days and named is None:
        return [_month(int(years[0]), month)]
    day = int(days[0]) if named is None else ORDINALS.index(named[0]) + 1
    if years:
        return [_days(date(int(years[0]), month, day))]
    date(2000, month, day)  # raises ValueError for a day that no year has
    return [_latest(lambda year: _days(date(year, month, day)), "", now_ms)]


def _yearly(text: str, now_ms: int) -> list[Interval]:
    """Return the month or season of "in May", "last summer", "winter of 2023"."""
    first, *_, last = text.split() if " " in text else [text, text]
    years = re.findall(rf"\b{_YEAR}\b", text)
    name = re.findall(rf"\b(?:{'|'.join(_SEASONS)}|{_MONTH})\b", text)[-1]
    month, count = (_SEASONS[name], 3) if name in _SEASONS else (_number_of_month(name), 1)
    if years:
        return [_months(int(last), month, count)]
    return [_latest(lambda year: _months(year, month, count), first, now_ms)]


def _part(text: str, now_ms: int) -> list[Interval]:
    """Return the part of a month of "early May", "in mid-May 2024", "from mid to late May", "at the end of May"."""
    years = re.findall(rf"\b{_YEAR}\b", text)
    month = _number_of_month(re.findall(rf"\b{_MONTH}\b", text)[-1])
    named = [days for name, days in _PARTS.items() if re.search(rf"\b{name}\b", text)]
    first, last = min(named)[0], max(named)[1]

    def of_year(year: int) -> Interval:
        whole = _month(year, month)
        return Interval(whole.from_ms + (first - 1) * DAY_MS, min(whole.from_ms + last * DAY_MS, whole.to_ms))

    return [of_year(int(years[0])) if years else _latest(of_year, "", now_ms)]


def _from_to(text: str, now_ms: int) -> list[Interval]:
    """Return the months of "between March and May", "from October 2023 to January"."""
    (first, since_year), (last, until_year) = re.findall(rf"\b({_MONTH})\b(?: ({_YEAR}))?", text)
    if since_year and not until_year:
        until_year = int(since_year) + (_number_of_month(last) < _number_of_month(first))
    until = _yearly(f"in {last} {until_year}".strip(), now_ms)[0]
    since = _yearly(f"in {first} {since_year}".strip(), until.to_ms - 1)[0]
    return [Interval(since.from_ms, until.to_ms)] if since.from_ms < until.to_ms else []


def _in_year(text: str, _: int) -> list[Interval]:
    return [_year(int(text[-4:]))]


def _near(text: str, now_ms: int) -> list[Interval]:
    """Return the day of "yesterday", "this morning", "the day after tomorrow"."""
    today = _today(now_ms)
    if text == "last night":  # it spans two days
        noon = _days(today).from_ms - DAY_MS // 2
        return [Interval(noon, noon + DAY_MS)]
    step = {"day before yesterday": -2, "yesterday": -1, "tomorrow": 1, "day after tomorrow": 2}.get(text, 0)
    return [_days(today + timedelta(days=step))]


def _period(text: str, now_ms: int) -> list[Interval]:
    """Return "last week", "this month", "next year", "the weekend"."""
    today = _today(now_ms)
    which, *_, unit = text.split()
    step = {"last": -1, "previous": -1, "next": 1, "coming": 1}.get(which, 0)
    if which == "past" or text.startswith("this last"):
        return [_until(1, unit, now_ms)]
    monday = today - timedelta(days=today.weekday())
    if unit == "week":
        return [_days(monday + timedelta(days=7 * step), 7)]
    if unit == "weekend":
        if which not in {
            "this",
            "next",
            "coming",
        }:  # "the": the latest that has begun; "last": the latest that has ended
            step = -1 if today.weekday() < 5 or which in {"last", "previous"} else 0
        return [_days(monday + timedelta(days=5 + 7 * step), 2)]
    return [_month(today.year, today.month + step) if unit == "month" else _year(today.year + step)]


def _weekday(text: str, now_ms: int) -> list[Interval]:
    """Return the day of "on Monday", "last Friday", "next Tuesday"."""
    today = _today(now_ms)
    which, name = text.split() if " " in text else ("on", text)
    ahead = _WEEKDAYS.index(name) - today.weekday()
    if which in {"last", "past", "previous"}:
        step = ahead if ahead < 0 else ahead - 7
    elif which in {"next", "coming"}:
        step = ahead if ahead > 0 else ahead + 7
    else:
        step = ahead if which == "this" or ahead <= 0 else ahead - 7
    return [_days(today + timedelta(days=step))]


def _ago(text: str, now_ms: int) -> list[Interval]:
    """Return the interval of "two days ago", as precise as its unit; "a few" allows one less or more."""
    count, unit = _counted(text.removesuffix("ago").strip())
    slack = 1 if re.search("few|several", text) else 0
    first, last = _back(count + slack, unit, now_ms), _back(count - slack, unit, now_ms)
    return [Interval(first.from_ms, last.to_ms)]


def _back(count: int, unit: str, now_ms: int) -> Interval:
    today = _today(now_ms)
    if unit in {"minute", "hour"}:
        size = HOUR_MS if unit == "hour" else HOUR_MS // 60
        return Interval(now_ms - count * size - size, now_ms - count * size + size)
    if unit == "week":  # around the same weekday
        return _days(today - timedelta(days=7 * count + 3), 7)
    if unit == "month":
        return _month(today.year, today.month - count)
    return _days(today - timedelta(days=count)) if unit == "day" else _year(today.year - count)


def _lasting(text: str, now_ms: int) -> list[Interval]:
    """Return the interval until now of "the last 3 weeks"."""
    count, unit = _counted(text.split(maxsplit=1)[1])
    return [_until(count, unit, now_ms)]


def _counted(text: str) -> tuple[int, str]:
    amount, unit = text.rsplit(maxsplit=1)
    return _count(amount), unit.removesuffix("s")


def _until(count: int, unit: str, now_ms: int) -> Interval:
    """Return the last `count` units until now. For days and longer units it starts at the beginning of a day."""
    if unit in {"minute", "hour"}:
        return Interval(now_ms - count * (HOUR_MS if unit == "hour" else HOUR_MS // 60), now_ms + 1)
    today = _today(now_ms)
    if unit == "weekend":
        return _period("last weekend", now_ms)[0]
    if unit in {"month", "year"}:
        start = today.year * 12 + today.month - 1 - count * (12 if unit == "year" else 1)
        length = _month(start // 12, start % 12 + 1)
        first = min(length.from_ms + (today.day - 1) * DAY_MS, length.to_ms - DAY_MS)
        return Interval(first, now_ms + 1)
    return Interval(_days(today - timedelta(days=count * (7 if unit == "week" else 1))).from_ms, now_ms + 1)


_PATTERNS: dict[str, tuple[str, Callable[[str, int], list[Interval]]]] = {
    "part": (
        rf"(?:(?:in|at|by|during|from) )?(?:the )?(?:{'|'.join(_PARTS)})(?:[ -]to[ -](?:mid|late))?(?: of|-| of the)? ?"
        rf"(?:the )?{_MONTH}\b(?:,? (?:of )?{_YEAR}\b)?",
        _part,
    ),
    "iso": (rf"{_YEAR}-\d\d-\d\d|{_YEAR}/\d\d?/\d\d?|{_YEAR}-\d\d", _iso),
    "numeric": (rf"\d\d?\.\d\d?\.{_YEAR}|\d\d?/\d\d?/{_YEAR}", _numeric),
    "from_to": (
        rf"(?:between {_MONTH}(?: {_YEAR})? and|from {_MONTH}(?: {_YEAR})? (?:to|through|thru|until|till)) {_MONTH}\b"
        rf"(?: {_YEAR}\b)?(?! \d)",
        _from_to,
    ),
    "written": (
        rf"(?:{_DAY} (?:of )?|{_ORDINAL} of ){_MONTH}\b\.?(?:,? {_YEAR}\b)?"
        rf"|(?!(?-i:may first\b)){_MONTH}\.? (?:the )?(?:{_DAY}|{_ORDINAL})\b(?:,? {_YEAR}\b)?"
        rf"|{_MONTH}\.?,? (?:of )?{_YEAR}",
        _written,
    ),
    "yearly": (
        rf"(?:(?:in|during|{_WHICH}) |{_DIRECTED})(?:the )?(?:early |late )?"
        rf"(?:{_MONTH}|{'|'.join(_SEASONS)})\b(?: (?:of )?{_YEAR})?"
        rf"|(?:{'|'.join(_SEASONS)}) (?:of )?{_YEAR}",
        _yearly,
    ),
    "in_year": (rf"(?:(?:in|during|of|the year) |{_DIRECTED}){_YEAR}", _in_year),
    "near": (
        "day before yesterday|day after tomorrow|yesterday|today|tonight|tomorrow|last night"
        "|this (?:morning|afternoon|evening)",
        _near,
    ),
    "ago": (rf"{_COUNT} {_UNIT} ago", _ago),
    "lasting": (rf"(?:last|past|previous) {_COUNT} {_UNIT}", _lasting),
    "period": (rf"(?:(?:this )?{_WHICH} (?:week|month|year|weekend)|(?:at|on|over|during) the weekend)", _period),
    "weekday": (
        rf"(?<!\ba )(?<!every )(?<!each )(?<!any )(?:(?:on|{_WHICH}) )?(?:{'|'.join(_WEEKDAYS)})"
        r"(?! (?:morning|afternoon|evening|night)s\b)",
        _weekday,
    ),
}
_RESOLVERS = {name: resolver for name, (_, resolver) in _PATTERNS.items()}
_ANY = re.compile(
    r"(?<![\w.,/-])(?:(?P<before>since|after|before|until|till) (?:the )?)?(?:"
    + "|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in _PATTERNS.items())
    + r")(?![\w-]|[./]\d)",
    re.IGNORECASE,
)
