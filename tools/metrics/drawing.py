"""The import graph as text and as a picture. Both leave out arrows that a longer path implies."""

from __future__ import annotations

from dataclasses import dataclass
from xml.sax.saxutils import escape

from tools.metrics.imports import ImportGraph

_WIDTH = 1080
_BOX_HEIGHT = 38
_FLOOR_HEIGHT = 104
_GAP = 16
_MIN_BOX = 84
_PX_PER_LINE = 0.055
_PX_PER_LETTER = 10
"""A name must fit its box."""
_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328;text-anchor:middle}"
    ".lines{font-size:10px;fill:#59636e}rect{fill:#ddf4ff;stroke:#0969da}"
    "path{fill:none;stroke:#818b98}.back{stroke:#cf222e}"
)


@dataclass(frozen=True)
class _Box:
    name: str
    x: float
    y: float
    width: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def as_text(graph: ImportGraph) -> str:
    """Return the floors of a graph from the top down, each node with its lines of code and its direct imports."""
    needs: dict[str, list[str]] = {name: [] for name in graph.sizes}
    for importer, imported in graph.essential():
        needs[importer].append(imported)
    floors = graph.floors()
    rows = [
        f"{number:>2}  {name:<16} {graph.sizes[name]:>6,}  {' '.join(needs[name])}".rstrip()
        for number, names in reversed(list(enumerate(floors)))
        for name in names
    ]
    head = f"{len(graph.sizes)} packages on {len(floors)} floors, {len(graph.arrows)} arrows, none of them back"
    return "\n".join([head, "floor package       lines  imports", *rows])


def as_svg(graph: ImportGraph) -> str:
    """Return the graph as a picture: every arrow points down, and a box is as wide as its package is long."""
    boxes = _placed(graph)
    height = max(box.y for box in boxes.values()) + _BOX_HEIGHT + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height:.0f}" role="img">',
        "<title>The imports between the packages of Retain</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,1 L7,4 L0,7" /></marker></defs>',
        f'<rect width="{_WIDTH}" height="{height:.0f}" style="fill:#fff;stroke:none" />',
    ]
    for importer, imported in graph.essential():
        start, end = boxes[importer], boxes[imported]
        top, bottom = start.y + _BOX_HEIGHT, end.y
        bend = (bottom - top) / 2
        parts.append(
            f'<path d="M{start.middle:.0f},{top:.0f} C{start.middle:.0f},{top + bend:.0f} '
            f'{end.middle:.0f},{bottom - bend:.0f} {end.middle:.0f},{bottom:.0f}" marker-end="url(#tip)" />'
        )
    for box in boxes.values():
        parts += [
            f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{_BOX_HEIGHT}" rx="4" />',
            f'<text x="{box.middle:.0f}" y="{box.y + 17:.0f}">{escape(box.name)}</text>',
            f'<text class="lines" x="{box.middle:.0f}" y="{box.y + 31:.0f}">{graph.sizes[box.name]:,} lines</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


def _placed(graph: ImportGraph) -> dict[str, _Box]:
    """Return each box's position: one row per floor, and within a row near the boxes that point to it."""
    boxes: dict[str, _Box] = {}
    arrows = graph.essential()

    def wanted(name: str) -> float:
        above = [boxes[start].middle for start, end in arrows if end == name and start in boxes]
        return sum(above) / len(above) if above else _WIDTH / 2

    for row, names in enumerate(reversed(graph.floors())):
        ordered = sorted(names, key=wanted)
        widths = [max(_MIN_BOX, len(name) * _PX_PER_LETTER, graph.sizes[name] * _PX_PER_LINE) for name in ordered]
        gap = (_WIDTH - sum(widths)) / (len(widths) + 1)
        x = gap
        for name, width in zip(ordered, widths, strict=True):
            boxes[name] = _Box(name, x, _GAP + row * _FLOOR_HEIGHT, width)
            x += width + gap
    return boxes
