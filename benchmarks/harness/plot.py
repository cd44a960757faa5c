"""Plots as SVG: bars with their quartiles, and lines over a size. They need nothing to be shown, in light and in dark."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from html import escape

from benchmarks.harness.figures import Spread

_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#888888")
"""Told apart by people who see colours differently. Source: https://sronpersonalpages.nl/~pault/#sec:qualitative"""
_WIDTH, _LABELS, _RIGHT = 760, 190, 90
_BAR, _GAP, _TOP = 16, 14, 56


def bars(title: str, unit: str, groups: Mapping[str, Mapping[str, Spread]]) -> str:
    """Return horizontal bars: a group of them for each key, one for each name, with a whisker between the quartiles."""
    names = list({name: None for group in groups.values() for name in group})
    most = max(spread.upper for group in groups.values() for spread in group.values()) or 1.0
    scale = (_WIDTH - _LABELS - _RIGHT) / most
    parts, y = [], _TOP
    for label, group in groups.items():
        parts.append(_text(_LABELS - 8, y + len(group) * _BAR / 2 + 4, label, "end"))
        for name, spread in group.items():
            end, middle = _LABELS + spread.median * scale, y + _BAR / 2
            colour = _COLOURS[names.index(name) % len(_COLOURS)]
            parts.append(
                f'<rect x="{_LABELS}" y="{y + 1}" width="{end - _LABELS:.1f}" height="{_BAR - 2}" fill="{colour}"/>'
            )
            low, high = (_LABELS + value * scale for value in (spread.lower, spread.upper))
            parts.append(f'<path d="M{low:.1f} {middle}H{high:.1f}" class="line"/>')
            parts.append(_text(max(high, end) + 5, middle + 4, f"{spread.median:.3g}", "start"))
            y += _BAR
        y += _GAP
    return _drawing(f"{title}, {unit}", names, parts, y)


def lines(title: str, across: str, unit: str, series: Mapping[str, Sequence[tuple[float, float]]]) -> str:
    """Return a line for each name, through its points of (size, value). Both axes are logarithmic."""
    names = list(series)
    xs = sorted({x for points in series.values() for x, _ in points})
    ys = [y for points in series.values() for _, y in points]
    left, right, top, bottom = 70, _WIDTH - 30, _TOP + 10, 340
    place_x = _logarithmic(xs[0], xs[-1], left, right)
    place_y = _logarithmic(min(ys), max(ys), bottom, top)
    parts = [f'<path d="M{left} {top}V{bottom}H{right}" class="line"/>']
    parts += [_text(place_x(x), bottom + 16, f"{x:,.0f}", "middle") for x in xs]
    for exponent in range(math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys))) + 1):
        for value in (10.0**exponent, 3 * 10.0**exponent):
            if min(ys) <= value <= max(ys):
                parts.append(f'<path d="M{left} {place_y(value):.1f}H{right}" class="grid"/>')
                parts.append(_text(left - 6, place_y(value) + 4, f"{value:g}", "end"))
    for number, points in enumerate(series.values()):
        colour = _COLOURS[number % len(_COLOURS)]
        at = " ".join(f"{place_x(x):.1f},{place_y(y):.1f}" for x, y in sorted(points))
        parts.append(f'<polyline points="{at}" fill="none" stroke="{colour}" stroke-width="2"/>')
        parts += [f'<circle cx="{place_x(x):.1f}" cy="{place_y(y):.1f}" r="3" fill="{colour}"/>' for x, y in points]
    parts.append(_text((left + right) / 2, bottom + 36, across, "middle"))
    return _drawing(f"{title}, {unit}", names, parts, bottom + 50)


def _logarithmic(least: float, most: float, start: float, end: float) -> Callable[[float], float]:
    width = math.log(most / least) or 1.0
    return lambda value: start + (end - start) * math.log(value / least) / width


def _drawing(title: str, names: Sequence[str], parts: Sequence[str], height: float) -> str:
    legend, x = [], 10.0
    for number, name in enumerate(names):
        legend.append(f'<rect x="{x:.0f}" y="30" width="10" height="10" fill="{_COLOURS[number % len(_COLOURS)]}"/>')
        legend.append(_text(x + 14, 39, name, "start"))
        x += 34 + 6.6 * len(name)
    style = (
        "<style>text{font:12px sans-serif;fill:#222}.line{stroke:#222;fill:none}.grid{stroke:#8884}"
        "@media(prefers-color-scheme:dark){text{fill:#ddd}.line{stroke:#ddd}}</style>"
    )
    shape = f'viewBox="0 0 {_WIDTH} {height:.0f}" width="{_WIDTH}" height="{height:.0f}"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {shape} role="img" aria-label="{escape(title)}">'
    return "\n".join([opening, style, _text(10, 18, title, "start"), *legend, *parts, "</svg>"]) + "\n"


def _text(x: float, y: float, content: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(content)}</text>'
