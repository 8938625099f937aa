"""Graphs as SVG, laid out here: a thing between two columns of neighbours, or the levels of a tree.

A picture carries its own small style sheet, also for dark screens. Labels are escaped like all crawled content, and
each node is a link.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

import msgspec

_STYLE = (
    ":root{color-scheme:light dark}text{font:12px system-ui,sans-serif;fill:#1c2330}.edge{stroke:#8a94a6;fill:none}"
    ".label{font-size:10px;fill:#566072;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".node rect{fill:#eef2f8;stroke:#8a94a6}.middle rect{fill:#dbe7ff;stroke:#2456c4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6eaf2}.label{fill:#a4aec0;stroke:#12161d}"
    ".node rect{fill:#1d2430;stroke:#6b7689}.middle rect{fill:#1f3158;stroke:#7aa2ff}}"
)
_BOX = 190  # pixels; all boxes have the same width, so that every edge ends at one
_LABEL = 26  # characters that fit into a box at 12 px


class Node(msgspec.Struct, frozen=True):
    label: str
    href: str
    title: str = ""


class Edge(msgspec.Struct, frozen=True):
    """From the middle to a neighbour, or the other way if `inward`."""

    label: str
    node: Node
    inward: bool = False


class Branch(msgspec.Struct, frozen=True):
    node: Node
    level: int
    parent: int  # index of its parent in the sequence, -1 = none


def star(middle: Node, edges: Sequence[Edge], *, title: str) -> str:
    """A thing and its neighbours in two columns: those that point to it on the left."""
    left = [edge for edge in edges if edge.inward]
    right = [edge for edge in edges if not edge.inward]
    rows = max(len(left), len(right), 1)
    width, height = 960, max(120, 44 * rows + 40)
    parts = []
    for column, side in ((left, -1), (right, 1)):
        for place, edge in enumerate(column):
            x = width / 2 + side * 375
            y = height / 2 + (place - (len(column) - 1) / 2) * 44
            parts.append(_curve(width / 2 + side * _BOX / 2, height / 2, x - side * _BOX / 2, y, edge.inward))
            parts.append(_text(width / 2 + side * 188, (height / 2 + y) / 2 + (y - height / 2) * 0.22 - 4, edge.label))
            parts.append(_box(edge.node, x, y))
    parts.append(_box(middle, width / 2, height / 2, kind="node middle"))
    return _svg(width, height, title, parts)


def tree(branches: Sequence[Branch], *, title: str) -> str:
    """How a site's pages were found, from left to right by distance. In `branches`, parents come before children."""
    levels: dict[int, list[int]] = {}
    for place, branch in enumerate(branches):
        levels.setdefault(branch.level, []).append(place)
    tallest = max((len(places) for places in levels.values()), default=1)
    width, height = max(480, 230 * len(levels) + 20), max(100, 26 * tallest + 30)
    spots: dict[int, tuple[float, float]] = {}
    for column, level in enumerate(sorted(levels)):
        places = sorted(levels[level], key=lambda place: spots.get(branches[place].parent, (0.0, 0.0))[1])
        for row, place in enumerate(places):
            spots[place] = (120 + column * 230, height * (row + 0.5) / len(places))
    parts = []
    for place, branch in enumerate(branches):
        if branch.parent in spots and branch.parent != place:
            (x1, y1), (x2, y2) = spots[branch.parent], spots[place]
            parts.append(_curve(x1 + _BOX / 2, y1, x2 - _BOX / 2, y2, False))
    for place, branch in enumerate(branches):
        parts.append(_box(branch.node, *spots[place], kind="node" if branch.level else "node middle", height=20))
    return _svg(width, height, title, parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
        f'width="{width:.0f}" height="{height:.0f}" aria-label={quoteattr(_clean(title))}>'
        f"<title>{escape(_clean(title))}</title>"
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="#8a94a6"/></marker></defs><style>{_STYLE}</style>{"".join(parts)}</svg>'
    )


def _box(node: Node, x: float, y: float, *, kind: str = "node", height: float = 28) -> str:
    label = _cut(node.label)
    return (
        f'<a href={quoteattr(node.href)} target="_top"><g class="{kind}">'
        f"<title>{escape(_clean(node.title or node.label))}</title>"
        f'<rect x="{x - _BOX / 2:.1f}" y="{y - height / 2:.1f}" width="{_BOX}" height="{height:.0f}" rx="6"/>'
        f'<text x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{escape(label)}</text></g></a>'
    )


def _curve(x1: float, y1: float, x2: float, y2: float, inward: bool) -> str:
    if inward:
        x1, y1, x2, y2 = x2, y2, x1, y1
    bend = (x2 - x1) / 2
    path = f"M{x1:.1f} {y1:.1f}C{x1 + bend:.1f} {y1:.1f} {x2 - bend:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    return f'<path class="edge" d="{path}" marker-end="url(#tip)"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text class="label" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(_cut(text))}</text>'


def _cut(text: str) -> str:
    text = _clean(text)
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def _clean(text: str) -> str:
    """Characters that XML 1.0 cannot hold become spaces."""
    return "".join(mark if _is_xml(mark) else " " for mark in text)


def _is_xml(mark: str) -> bool:
    return " " <= mark < "\ud800" or "\ue000" <= mark <= "\ufffd" or mark >= "\U00010000"
