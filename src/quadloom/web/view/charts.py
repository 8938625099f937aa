"""Charts as SVG inside a page: bars, lines, a timeline, a map. They use the classes of the style sheet and no styles of
their own, so both themes and the content security policy hold for them; a table of the same values is always beside.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

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


class Mark(msgspec.Struct, frozen=True):
    """One value of a chart: what it is called, where a click leads, and its numbers."""

    label: str
    x: float
    y: float = 0.0
    href: str = ""


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


def world(marks: Sequence[Mark], title: str, *, land: str = "") -> Markup:
    """Points on a plain map (equirectangular): `x` longitude, `y` latitude. It shows the part that has points, with a
    margin, and a grid with degrees. `land`: outlines in a viewBox of degrees, if there are any."""
    inside = [mark for mark in marks if -180 <= mark.x <= 180 and -90 <= mark.y <= 90][:_MAX_POINTS]
    if not inside:
        return Markup()
    west, east, south, north = _frame(inside)
    width, height = _WIDTH, max(160.0, min(520.0, _WIDTH * (north - south) / (east - west)))
    scale_x, scale_y = width / (east - west), height / (north - south)
    parts = [f'<rect class="sea" width="{width:.0f}" height="{height:.0f}"/>']
    if land:
        parts.append(
            f'<svg x="0" y="0" width="{width:.0f}" height="{height:.0f}" preserveAspectRatio="none" '
            f'viewBox="{west:.4f} {-north:.4f} {east - west:.4f} {north - south:.4f}">'
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
    for mark in inside:
        x, y = (mark.x - west) * scale_x, (north - mark.y) * scale_y
        circle = f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="6"/>'
        parts.append(_linked(mark.href, f"<title>{escape(_clean(mark.label))}</title>{circle}"))
    return _svg(width, height, title, parts)


def _frame(marks: Sequence[Mark]) -> tuple[float, float, float, float]:
    west, east = min(mark.x for mark in marks), max(mark.x for mark in marks)
    south, north = min(mark.y for mark in marks), max(mark.y for mark in marks)
    span = max(east - west, 2 * (north - south), 4.0) * 1.2
    middle_x, middle_y = (west + east) / 2, (south + north) / 2
    span = min(span, 360.0)
    west = min(max(middle_x - span / 2, -180.0), 180.0 - span)
    south = min(max(middle_y - span / 4, -90.0), 90.0 - span / 2)
    return west, west + span, south, south + span / 2


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
