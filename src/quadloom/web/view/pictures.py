"""Graphs as SVG, laid out here: a thing between two columns of neighbours, or the levels of a tree.

A picture carries its own small style sheet, also for dark screens. Labels are escaped like all crawled content, and
each node is a link.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

import msgspec

from quadloom.asking.things.paths import type_name, words
from quadloom.asking.things.schema import SchemaClass, SchemaPicture

_STYLE = (
    ":root{color-scheme:light dark}text{font:12px system-ui,sans-serif;fill:#1c2330}.edge{stroke:#8a94a6;fill:none}"
    ".label{font-size:10px;fill:#566072;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".node rect{fill:#eef2f8;stroke:#8a94a6}.middle rect{fill:#dbe7ff;stroke:#2456c4}"
    "@media(prefers-color-scheme:dark){text{fill:#e6eaf2}.label{fill:#a4aec0;stroke:#12161d}"
    ".node rect{fill:#1d2430;stroke:#6b7689}.middle rect{fill:#1f3158;stroke:#7aa2ff}}"
)
_NETWORK_STYLE = (
    ":root{color-scheme:light dark}text{font:12px system-ui,sans-serif;fill:#1a2130}"
    ".edge{stroke:#8a94a6;fill:none;opacity:.6}"
    ".edge-label{font-size:10px;fill:#535d70;paint-order:stroke;stroke:#fff;stroke-width:4px}"
    ".box{fill:#f5f7fb;stroke:#535d70}.box.middle{fill:#e8efff;stroke:#2450b8}"
    "@media(prefers-color-scheme:dark){text{fill:#e6eaf2}.edge-label{fill:#a7b1c3;stroke:#11151c}"
    ".box{fill:#1a202a;stroke:#a7b1c3}.box.middle{fill:#1c2c52;stroke:#7aa2ff}}"
)
_STEPS = 120  # of the layout
_GAP = 58  # pixels from the middle of a box to that of the one below it: a label fits between them
_LABEL_PLACES = (0.5, 0.45, 0.55, 0.4, 0.6, 0.35, 0.65, 0.3, 0.7, 0.25, 0.75, 0.2, 0.8)  # of a label on its edge
_LETTER_WIDTH = 5.6  # pixels of a letter at 10 px
_BOX_WIDTH = 190  # pixels; all boxes have the same width, so that every edge ends at one
_MAX_LABEL = 26  # characters that fit into a box at 12 px


class _Area(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def shared(self, other: _Area) -> float:
        """Square pixels that both cover."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(0.0, across) * max(0.0, down)


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


class NetworkEdge(msgspec.Struct, frozen=True):
    """From one node to another. `weight`: how thick it is drawn, 0 to 1."""

    source: Node
    target: Node
    label: str = ""
    weight: float = 0.0


def network(edges: Sequence[NetworkEdge], *, title: str, nodes: Sequence[Node] = (), middle: str = "") -> str:
    """Nodes and lines, for a page: the classes are in its style sheet. `middle`: address of the node to stand out."""
    found = {node.href: node for node in nodes}
    for edge in edges:
        found.setdefault(edge.source.href, edge.source)
        found.setdefault(edge.target.href, edge.target)
    degree = {href: sum(href in (edge.source.href, edge.target.href) for edge in edges) for href in found}
    order = sorted(found, key=lambda href: (-degree[href], found[href].label))
    spots, width, height = _settled(order, edges)
    taken = [_box_area(found[href], *spots[href]) for href in order]
    parts = []
    for edge in edges:
        if edge.source.href == edge.target.href:
            continue
        (x1, y1), (x2, y2) = spots[edge.source.href], spots[edge.target.href]
        size = 1 + 4 * edge.weight
        parts.append(f'<path class="edge" stroke-width="{size:.1f}" d="M{x1:.0f} {y1:.0f}L{x2:.0f} {y2:.0f}"/>')
        if edge.label:
            label = _cut(edge.label)
            area = _free_area(label, spots[edge.source.href], spots[edge.target.href], taken)
            taken.append(area)
            parts.append(
                f'<text class="edge-label" x="{(area.left + area.right) / 2:.0f}" y="{area.bottom - 3:.0f}" '
                f'text-anchor="middle">{escape(label)}</text>'
            )
    for href in order:
        parts.append(_label_box(found[href], *spots[href], middle=href == (middle or order[0])))
    return (
        f'<svg class="figure" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="group" aria-label={quoteattr(_clean(title))}>{"".join(parts)}</svg>'
    )


def schema_network(picture: SchemaPicture, link: Callable[[SchemaClass], str], *, numbers: bool = True) -> str:
    """Types as boxes, and the properties between them as lines. `link`: where a type leads. `numbers`: of its things,
    if there are as many behind the link."""
    nodes = {
        one.iri: Node(type_name(one.iri) + (f" · {one.things}" if numbers else ""), link(one), one.iri)
        for one in picture.classes
    }
    labels: dict[tuple[str, str], list[str]] = {}
    weights: Counter[tuple[str, str]] = Counter()
    for found in picture.links:
        pair = (found.source, found.target)
        labels.setdefault(pair, []).append(words(found.property))
        weights[pair] += found.count
    most = max(weights.values(), default=1)
    edges = [
        NetworkEdge(nodes[source], nodes[target], ", ".join(names), weights[source, target] / most)
        for (source, target), names in labels.items()
    ]
    return network(edges, title="Types and how they are linked", nodes=list(nodes.values()))


def standalone(svg: str) -> str:
    """A picture of `network` as a file of its own, with its styles inside."""
    return svg.replace(">", f' xmlns="http://www.w3.org/2000/svg"><style>{_NETWORK_STYLE}</style>', 1)


def _settled(order: Sequence[str], edges: Sequence[NetworkEdge]) -> tuple[dict[str, tuple[float, float]], float, float]:
    """Places of nodes: linked ones attract and all repel each other (Fruchterman and Reingold 1991), from a circle, so
    the same graph is always drawn the same. Nodes without links stand in rows below."""
    linked = {href for edge in edges for href in (edge.source.href, edge.target.href) if edge.source != edge.target}
    names = [name for name in order if name in linked]
    width, height = max(640.0, 290.0 * math.sqrt(len(names) + 1)), max(150.0, 130.0 * math.sqrt(len(names) + 1))
    spots = {
        name: [
            width / 2 + width / 3 * math.cos(2.4 * place) * (place + 1) / len(names),
            height / 2 + height / 3 * math.sin(2.4 * place) * (place + 1) / len(names),
        ]
        for place, name in enumerate(names)
    }
    pairs = {(edge.source.href, edge.target.href) for edge in edges if edge.source.href != edge.target.href}
    for step in range(_STEPS):
        _relax(spots, pairs, (width, height), 1 - step / _STEPS)
    placed = _spread(spots, width, height)
    single = [name for name in order if name not in linked]
    across = max(1, int(width // 210))
    for place, name in enumerate(single):
        placed[name] = (105 + 210.0 * (place % across), height + 30 + 44.0 * (place // across))
    rows = -(-len(single) // across)
    return placed, width, height + 44.0 * rows + (16 if rows else 0)


def _relax(
    spots: dict[str, list[float]], pairs: set[tuple[str, str]], size: tuple[float, float], warmth: float
) -> None:
    """One step. Across, boxes need twice the room that they need downwards."""
    wish = 0.8 * math.sqrt(size[0] / 2 * size[1] / max(1, len(spots)))
    moves = {name: [0.0, 0.0] for name in spots}
    names = list(spots)
    for place, one in enumerate(names):
        for other in names[:place]:
            dx, dy = (spots[one][0] - spots[other][0]) / 2, spots[one][1] - spots[other][1]
            far = math.hypot(dx, dy) or 0.1
            force = wish * wish / far - (far * far / wish if (one, other) in pairs or (other, one) in pairs else 0.0)
            for name, sign in ((one, 1), (other, -1)):
                moves[name][0] += sign * dx / far * force
                moves[name][1] += sign * dy / far * force
    limit = 40 * warmth + 1
    for name, (dx, dy) in moves.items():
        far = math.hypot(dx, dy) or 0.1
        spot, step = spots[name], min(far, limit) / far
        # Towards the middle, a little: parts that are not linked would fly apart.
        spot[0] += 2 * dx * step + 0.04 * (size[0] / 2 - spot[0])
        spot[1] += dy * step + 0.04 * (size[1] / 2 - spot[1])


def _spread(spots: dict[str, list[float]], width: float, height: float) -> dict[str, tuple[float, float]]:
    """Stretched to fill the picture, then boxes that cover each other pushed apart."""
    for axis, low, high in ((0, 100.0, width - 100), (1, 20.0, height - 20)):
        least = min((spot[axis] for spot in spots.values()), default=0.0)
        span = max((spot[axis] for spot in spots.values()), default=1.0) - least or 1.0
        for spot in spots.values():
            spot[axis] = low + (spot[axis] - least) * (high - low) / span
    for _ in range(60):
        names = sorted(spots, key=lambda name: spots[name][1])
        for place, lower in enumerate(names):
            for upper in names[:place]:
                one, other = spots[upper], spots[lower]
                if abs(one[0] - other[0]) < 185 and (missing := _GAP - (other[1] - one[1])) > 0:
                    one[1] = max(20.0, one[1] - missing / 2)
                    other[1] = min(height - 20, other[1] + missing / 2)
    return {name: (spot[0], spot[1]) for name, spot in spots.items()}


def _free_area(label: str, begin: tuple[float, float], end: tuple[float, float], taken: Sequence[_Area]) -> _Area:
    """The place on an edge, nearest to its middle, at which its label covers least of what is drawn already."""
    half = _LETTER_WIDTH * len(label) / 2

    def at(place: float) -> _Area:
        x, y = (first + place * (last - first) for first, last in zip(begin, end, strict=True))
        return _Area(x - half, y - 7, x + half, y + 6)

    return min(map(at, _LABEL_PLACES), key=lambda area: sum(map(area.shared, taken)))


def _box_area(node: Node, x: float, y: float) -> _Area:
    half = _half(node)
    return _Area(x - half, y - 14, x + half, y + 14)


def _half(node: Node) -> float:
    """Half of the width of a node's box."""
    return max(30.0, 3.6 * min(len(node.label), 30) + 8)


def _label_box(node: Node, x: float, y: float, *, middle: bool) -> str:
    label = node.label if len(node.label) <= 30 else node.label[:29] + "…"
    half = _half(node)
    return (
        f"<a href={quoteattr(node.href)}><title>{escape(_clean(node.title or node.label))}</title>"
        f'<rect class="box{" middle" if middle else ""}" x="{x - half:.0f}" y="{y - 14:.0f}" width="{2 * half:.0f}" '
        f'height="28" rx="6"/><text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{escape(_clean(label))}</text></a>'
    )


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
            parts.append(
                _curve(width / 2 + side * _BOX_WIDTH / 2, height / 2, x - side * _BOX_WIDTH / 2, y, edge.inward)
            )
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
            parts.append(_curve(x1 + _BOX_WIDTH / 2, y1, x2 - _BOX_WIDTH / 2, y2, False))
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
    left, top = x - _BOX_WIDTH / 2, y - height / 2
    return (
        f'<a href={quoteattr(node.href)} target="_top"><g class="{kind}">'
        f"<title>{escape(_clean(node.title or node.label))}</title>"
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{_BOX_WIDTH}" height="{height:.0f}" rx="6"/>'
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
    return text if len(text) <= _MAX_LABEL else text[: _MAX_LABEL - 1] + "…"


def _clean(text: str) -> str:
    """Characters that XML 1.0 cannot hold become spaces."""
    return "".join(mark if _is_xml(mark) else " " for mark in text)


def _is_xml(mark: str) -> bool:
    return " " <= mark < "\ud800" or "\ue000" <= mark <= "\ufffd" or mark >= "\U00010000"
