"""Line charts: as SVG without any dependency, as PNG by matplotlib (the extra `plots`)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from quadloom.errors import UsageError

# The palette of Okabe and Ito, for readers with any kind of colour vision.
# Okabe and Ito's palette, which readers with any kind of colour vision can distinguish.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999")
_WIDTH, _HEIGHT = 860, 420
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 250, 40, 48


class Series(NamedTuple):
    """One line. `band`: (x, low, high) of a shaded range around it."""

    name: str
    points: Sequence[tuple[float, float]]
    band: Sequence[tuple[float, float, float]] = ()


def line_chart(path: Path, series: Sequence[Series], *, title: str, x_label: str, y_label: str) -> None:
    """Write a chart; the suffix of `path` decides the format."""
    if path.suffix == ".svg":
        path.write_text(svg(series, title=title, x_label=x_label, y_label=y_label), encoding="utf-8")
    elif path.suffix == ".png":
        _png(path, series, title, x_label, y_label)
    else:
        raise UsageError(f"cannot plot to {path.name}", hint="use a name that ends in .svg or .png")


def svg(series: Sequence[Series], *, title: str, x_label: str, y_label: str) -> str:
    """A complete SVG document."""
    xs = [x for line in series for x, _ in line.points] or [0.0, 1.0]
    ys = [y for line in series for _, y in line.points]
    ys += [y for line in series for _, *bounds in line.band for y in bounds]
    ys = ys or [0.0, 1.0]
    x_ticks, y_ticks = ticks(min(xs), max(xs)), ticks(min(ys), max(ys))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        up = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return _LEFT + across * (_WIDTH - _LEFT - _RIGHT), _HEIGHT - _BOTTOM - up * (_HEIGHT - _TOP - _BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'font-family="sans-serif" font-size="12"><title>{escape(title)}</title>',
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) // 2}" y="{_HEIGHT - 10}" text-anchor="middle">{escape(x_label)}</text>',
        f'<text transform="translate(14 {_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>',
    ]
    for tick in y_ticks:
        x, y = place(x_ticks[0], tick)
        parts.append(f'<path d="M{x:.1f} {y:.1f}H{_WIDTH - _RIGHT}" stroke="#ddd"/>')
        parts.append(f'<text x="{x - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>')
    for tick in x_ticks:
        x, y = place(tick, y_ticks[0])
        parts.append(f'<text x="{x:.1f}" y="{y + 18:.1f}" text-anchor="middle">{tick:g}</text>')
    for number, line in enumerate(series):
        colour = _COLOURS[number % len(_COLOURS)]
        dash = ' stroke-dasharray="6 3"' if number >= len(_COLOURS) else ""
        if line.band:
            upper = [place(x, high) for x, _, high in line.band]
            lower = [place(x, low) for x, low, _ in reversed(line.band)]
            outline = " ".join(f"{x:.1f},{y:.1f}" for x, y in upper + lower)
            parts.append(f'<polygon points="{outline}" fill="{colour}" opacity="0.12"/>')
        points = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in line.points)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>')
        y = _TOP + 16 * number
        parts.append(f'<path d="M{_WIDTH - _RIGHT + 14} {y}h20" stroke="{colour}" stroke-width="2"{dash}/>')
        parts.append(f'<text x="{_WIDTH - _RIGHT + 40}" y="{y + 4}">{escape(line.name)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers that enclose the range."""
    span = high - low or abs(high) or 1.0
    power = 10.0 ** (len(f"{span:.0f}") - 1) if span >= 1.0 else 1.0
    while power > span:
        power /= 10.0
    step = next(power * m for m in (0.1, 0.2, 0.25, 0.5, 1.0, 2.0) if span / (power * m) <= 7.0)
    first = int(low // step)
    last = -int(-high // step)
    return [round(n * step, 12) for n in range(first, max(last, first + 1) + 1)]


def _png(path: Path, series: Sequence[Series], title: str, x_label: str, y_label: str) -> None:
    if find_spec("matplotlib") is None:
        raise UsageError("PNG plots need matplotlib", hint="pip install 'quadloom[plots]', or plot to a .svg file")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5))
    axes = figure.add_subplot(title=title, xlabel=x_label, ylabel=y_label)
    for line in series:
        (drawn,) = axes.plot([x for x, _ in line.points], [y for _, y in line.points], label=line.name)
        if line.band:
            xs, low, high = ([row[column] for row in line.band] for column in range(3))
            axes.fill_between(xs, low, high, color=drawn.get_color(), alpha=0.12)
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize="small")
    figure.savefig(path, bbox_inches="tight")
