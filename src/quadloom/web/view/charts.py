"""Charts as SVG inside a page: bars, lines, a timeline, a map. They use the classes of the style sheet and no styles of
their own, so both themes and the content security policy hold for them; a table of the same values is always beside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
from markupsafe import Markup, escape

from quadloom.asking.audit.report import TrendPoint
from quadloom.web.view.filters import span

_WIDTH = 760.0
_LABEL_WIDTH = 190.0
_ROW_HEIGHT = 24.0
_MAX_BARS = 40
_MAX_POINTS = 2000
_MAX_LABEL = 28
_MAX_NAMES = 8  # of one point of a map
_MAX_LABELLED = 14  # points of a map that have their names beside them
_CLUSTER = 22.0
_VENDOR = Path(__file__).parents[1] / "static" / "vendor"
_UNIT = 100  # parts of a degree
_FINE, _COARSE = 700, 12  # parts of the width between two points, on the map and beside it
_LEAST_POINTS = 3


class Mark(msgspec.Struct, frozen=True):
    """One value of a chart: what it is called, where a click leads, and its numbers."""

    label: str
    x: float
    y: float = 0.0
    href: str = ""


class MapFrame(NamedTuple):
    """In degrees."""

    west: float
    east: float
    south: float
    north: float


def bars(marks: Sequence[Mark], title: str) -> Markup:
    """Horizontal bars, one for each mark; `x` is its length."""
    shown = marks[:_MAX_BARS]
    most = max((abs(mark.x) for mark in shown), default=0.0) or 1.0
    left = _label_width(shown)
    height = _ROW_HEIGHT * len(shown) + 8
    parts = []
    for place, mark in enumerate(shown):
        y = 4 + place * _ROW_HEIGHT
        width = max(1.0, (_WIDTH - left - 90) * abs(mark.x) / most)
        tone = "fill" if mark.x >= 0 else "fill cbad"
        size = f'width="{width:.1f}" height="{_ROW_HEIGHT - 8:.0f}" rx="2"'
        parts.append(
            _linked(
                mark.href,
                f'<text x="{left - 8:.0f}" y="{y + 15:.1f}" text-anchor="end">{_cut(mark.label, _MAX_LABEL)}</text>'
                f'<rect class="{tone}" x="{left:.0f}" y="{y + 3:.1f}" {size}/>'
                f'<text class="tick" x="{left + width + 6:.1f}" y="{y + 15:.1f}">{_number(mark.x)}</text>',
            )
        )
    return _svg(_WIDTH, height, title, parts)


def _label_width(marks: Sequence[Mark]) -> float:
    """Room for the longest label at 12 px, so that short ones leave no gap; a letter of a wide script takes 12 px."""
    widths = (sum(12.5 if letter > "\u2e80" else 7.5 for letter in mark.label[:_MAX_LABEL]) for mark in marks)
    return min(_LABEL_WIDTH, 14.0 + max(widths, default=0.0))


def line(series: Sequence[tuple[str, Sequence[Mark]]], title: str, *, dates: bool = False) -> Markup:
    """Lines over `x`: Unix time with `dates`, else seconds since a begin."""
    marks = [mark for _, points in series for mark in points]
    if not marks:
        return Markup()
    height, left, bottom = 240.0, 56.0, 28.0
    low_x, high_x = min(mark.x for mark in marks) if dates else 0.0, max(mark.x for mark in marks)
    high_y = max(max(mark.y for mark in marks), 0.0) or 1.0
    low_y = min(0.0, *(mark.y for mark in marks))
    scale_x = (_WIDTH - left - 16) / ((high_x - low_x) or 1.0)
    scale_y = (height - bottom - 12) / ((high_y - low_y) or 1.0)
    parts = []
    for step in _steps(low_y, high_y):
        y = height - bottom - (step - low_y) * scale_y
        parts.append(f'<path class="grid" d="M{left:.0f} {y:.1f}H{_WIDTH - 16:.0f}"/>')
        parts.append(f'<text class="tick" x="{left - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{_number(step)}</text>')
    for place in range(5):
        value = low_x + (high_x - low_x) * place / 4
        x = left + (value - low_x) * scale_x
        anchor = "start" if place == 0 else "end" if place == 4 else "middle"
        label = _date(value, high_x - low_x) if dates else span(value)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{height - 8:.0f}" text-anchor="{anchor}">{label}</text>')
    for number, (_, points) in enumerate(series, 1):
        path = "L".join(
            f"{left + (mark.x - low_x) * scale_x:.1f} {height - bottom - (mark.y - low_y) * scale_y:.1f}"
            for mark in points[-_MAX_POINTS:]
        )
        parts.append(f'<path class="stroke c{(number - 1) % 6 + 1}" d="M{path}"/>')
    return _svg(_WIDTH, height, title, parts)


def trend(points: Sequence[TrendPoint], title: str) -> Markup:
    """Errors and warnings that were open over time; empty if there is nothing to compare."""
    if len(points) < 2:
        return Markup()
    errors = [Mark("", point.at, point.errors) for point in points]
    warnings = [Mark("", point.at, point.warnings) for point in points]
    return line([("errors", errors), ("warnings", warnings)], title, dates=True)


def timeline(marks: Sequence[Mark], title: str) -> Markup:
    """Points on an axis of time; `x` is Unix time. Points that would cover each other are stacked."""
    shown = sorted(marks, key=lambda mark: mark.x)[:300]
    if not shown:
        return Markup()
    low, high = shown[0].x, shown[-1].x
    scale = (_WIDTH - 48) / ((high - low) or 1.0)
    lanes: list[float] = []
    dots = []
    for mark in shown:
        x = 24 + (mark.x - low) * scale if high > low else _WIDTH / 2
        lane = next((number for number, end in enumerate(lanes) if x - end > 14), len(lanes))
        lanes[lane : lane + 1] = [x]
        dots.append((x, lane, mark))
    base = 30 + 15.0 * min(len(lanes), 16)
    parts = [f'<path class="axis" d="M16 {base:.0f}H{_WIDTH - 16:.0f}"/>']
    for place in range(6):
        value = low + (high - low) * place / 5
        x = 24 + (_WIDTH - 48) * place / 5
        anchor = "start" if place == 0 else "end" if place == 5 else "middle"
        parts.append(f'<path class="axis" d="M{x:.1f} {base:.0f}v5"/>')
        text = _date(value, high - low)
        parts.append(f'<text class="tick" x="{x:.1f}" y="{base + 18:.0f}" text-anchor="{anchor}">{text}</text>')
    for x, lane, mark in dots:
        circle = f'<circle class="dot" cx="{x:.1f}" cy="{base - 10 - 15 * (lane % 16):.1f}" r="6"/>'
        words = f"{mark.label} · {_date(mark.x, 1.0)}"
        parts.append(_linked(mark.href, f"<title>{escape(_clean(words))}</title>{circle}"))
    return _svg(_WIDTH, base + 26, title, parts)


def world(marks: Sequence[Mark], title: str) -> Markup:
    """Points on a map (equirectangular) with coasts and borders: `x` longitude, `y` latitude. It shows the part with
    points, with a margin, and a grid with degrees. Points that would cover each other are one, with their number."""
    inside = [mark for mark in marks if -180 <= mark.x <= 180 and -90 <= mark.y <= 90][:_MAX_POINTS]
    if not inside:
        return Markup()
    frame = _frame(inside)
    west, east, south, north = frame
    width, height = _WIDTH, max(160.0, min(520.0, _WIDTH * (north - south) / (east - west)))
    scale_x, scale_y = width / (east - west), height / (north - south)
    parts = [f'<rect class="sea" width="{width:.0f}" height="{height:.0f}"/>']
    if land := _outlines(frame):
        parts.append(
            f'<svg x="0" y="0" width="{width:.0f}" height="{height:.0f}" preserveAspectRatio="none" '
            f'viewBox="{_UNIT * west:.2f} {-_UNIT * north:.2f} {_UNIT * (east - west):.2f} '
            f'{_UNIT * (north - south):.2f}">'
            f'<path class="land" vector-effect="non-scaling-stroke" d="{land}"/></svg>'
        )
    step = _degrees(east - west)
    for value in _multiples(west, east, step):
        x = (value - west) * scale_x
        parts.append(f'<path class="grid" d="M{x:.1f} 0V{height:.0f}"/>')
        parts.append(f'<text class="tick" x="{x + 3:.1f}" y="{height - 4:.0f}">{_angle(value, step, "EW")}</text>')
    for value in _multiples(south, north, step):
        y = (north - value) * scale_y
        parts.append(f'<path class="grid" d="M0 {y:.1f}H{width:.0f}"/>')
        parts.append(f'<text class="tick" x="3" y="{y - 3:.1f}">{_angle(value, step, "NS")}</text>')
    placed = [((mark.x - west) * scale_x, (north - mark.y) * scale_y, mark) for mark in inside]
    clusters = _clusters(placed)
    for x, y, found in clusters:
        names = ", ".join(dict.fromkeys(_clean(mark.label) for mark in found[:_MAX_NAMES]))
        more = f" and {len(found) - _MAX_NAMES} more" if len(found) > _MAX_NAMES else ""
        radius = 6 if len(found) == 1 else 9 + min(9.0, 2 * math.log2(len(found)))
        dot = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'
        if len(found) > 1:
            dot += f'<text class="many" x="{x:.1f}" y="{y + 4:.1f}" text-anchor="middle">{len(found)}</text>'
        if len(clusters) <= _MAX_LABELLED:
            right = x < width - 160
            place = f'x="{x + (radius + 4 if right else -radius - 4):.1f}" text-anchor="{"start" if right else "end"}"'
            dot += f'<text class="name" {place} y="{y + 4:.1f}">{_cut(found[0].label, _MAX_LABEL)}</text>'
        href = found[0].href if len({mark.href for mark in found}) == 1 else ""
        parts.append(_linked(href, f"<title>{escape(names + more)}</title>{dot}"))
    return _svg(width, height, title, parts)


def _outlines(frame: MapFrame) -> str:
    """Coasts and borders as a path in hundredths of a degree, with south as positive y, as SVG counts. Only rings that
    the map shows are drawn, and points outside of it are thinned out. Empty without the file of `make web`."""
    west, east, south, north = (round(_UNIT * side) for side in frame)
    fine, coarse = (east - west) / _FINE, (east - west) / _COARSE
    parts = []
    for left, low, right, high, *steps in _rings():
        if right < west or left > east or high < south or low > north or max(right - left, high - low) < 2 * fine:
            continue
        kept: list[tuple[int, int]] = []
        for x, y in zip(accumulate(steps[::2]), accumulate(steps[1::2]), strict=True):
            least = fine if west <= x <= east and south <= y <= north else coarse
            if not kept or abs(x - kept[-1][0]) + abs(y - kept[-1][1]) >= least:
                kept.append((x, y))
        if len(kept) >= _LEAST_POINTS:
            moves = (f"{x - a} {b - y}" for (a, b), (x, y) in pairwise(kept))
            parts.append(f"M{kept[0][0]} {-kept[0][1]}l{' '.join(moves)}Z")
    return "".join(parts)


@lru_cache(maxsize=1)  # .6 MB of text, 30 ms
def _rings() -> list[list[int]]:
    """Of Natural Earth, 1 : 50 million: west, south, east, north, then points as differences from the one before."""
    manifest = _VENDOR / "manifest.json"
    names = msgspec.json.decode(manifest.read_bytes(), type=dict[str, str]) if manifest.is_file() else {}
    file = _VENDOR / names.get("land.json", "none")
    return msgspec.json.decode(file.read_bytes(), type=list[list[int]]) if file.is_file() else []


def _clusters(placed: Sequence[tuple[float, float, Mark]]) -> list[tuple[float, float, list[Mark]]]:
    """Points that lie closer than two dots are wide, together at the place of the first of them."""
    found: dict[tuple[int, int], tuple[float, float, list[Mark]]] = {}
    for x, y, mark in placed:
        cell = (int(x // _CLUSTER), int(y // _CLUSTER))
        near = [
            found[place] for dx in (-1, 0, 1) for dy in (-1, 0, 1) if (place := (cell[0] + dx, cell[1] + dy)) in found
        ]
        home = next((one for one in near if math.hypot(one[0] - x, one[1] - y) < _CLUSTER), None)
        (home or found.setdefault(cell, (x, y, [])))[2].append(mark)
    return sorted(found.values(), key=lambda one: -len(one[2]))


def _frame(marks: Sequence[Mark]) -> MapFrame:
    west, east = min(mark.x for mark in marks), max(mark.x for mark in marks)
    south, north = min(mark.y for mark in marks), max(mark.y for mark in marks)
    span = max(east - west, 2 * (north - south), 4.0) * 1.2
    middle_x, middle_y = (west + east) / 2, (south + north) / 2
    span = min(span, 360.0)
    west = min(max(middle_x - span / 2, -180.0), 180.0 - span)
    south = min(max(middle_y - span / 4, -90.0), 90.0 - span / 2)
    return MapFrame(west, west + span, south, south + span / 2)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> Markup:
    name = escape(_clean(title))
    return Markup(
        f'<svg class="figure" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="group" aria-label="{name}">{"".join(parts)}</svg>'
    )


def _linked(href: str, inner: str) -> str:
    return f'<a href="{escape(href)}">{inner}</a>' if href else f"<g>{inner}</g>"


def _steps(low: float, high: float) -> list[float]:
    rough = (high - low) / 4 or 1.0
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough)
    return _multiples(low, high, step)


def _degrees(span: float) -> float:
    return next((step for step in (0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0) if span / step <= 9), 60.0)


def _multiples(low: float, high: float, step: float) -> list[float]:
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _angle(value: float, step: float, sides: str) -> str:
    """`12°E`; `sides`: the letters for positive and negative angles."""
    side = sides[0] if value > 0 else sides[1] if value < 0 else ""
    return f"{abs(value):.{0 if step >= 1 else 2}f}°{side}"


def _date(at: float, span: float) -> str:
    try:
        moment = datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    if span > 10 * 365 * 86400:
        return moment.strftime("%Y")
    if span == 1.0 or span > 3 * 86400:
        return moment.strftime("%Y-%m-%d")
    return moment.strftime("%m-%d %H:%M" if span > 86400 else "%H:%M:%S")  # two days have each time twice


def _number(value: float) -> str:
    text = f"{value:,.2f}".rstrip("0").rstrip(".") if abs(value) < 1000 else f"{value:,.0f}"
    return text.replace(",", "\u202f")


def _cut(text: str, length: int) -> Markup:
    text = _clean(text)
    return escape(text if len(text) <= length else text[: length - 1] + "…")


def _clean(text: str) -> str:
    return "".join(mark if mark.isprintable() else " " for mark in text)
