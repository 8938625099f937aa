"""Recall over requests as SVG: a line per strategy, the mean over webs, with a band from the worst web to the best."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from quadloom_lab.topical.evaluation import Evaluation, EvaluationRun

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP, _RIGHT = 760, 440, 60, 50, 30, 150
_COLOURS = ("#0b6e4f", "#c0392b", "#2a5caa", "#b8860b", "#7d7d7d", "#6c3483")
_STEPS = 100


def recall_plot(evaluation: Evaluation) -> str:
    """A complete SVG document."""
    names = list(dict.fromkeys(run.strategy for run in evaluation.runs))
    parts = [_frame(evaluation)]
    for place, name in enumerate(names):
        runs = [run for run in evaluation.runs if run.strategy == name]
        parts.append(_line(name, runs, evaluation.budget, _COLOURS[place % len(_COLOURS)], place))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" '
        f'font-size="12" role="img"><title>Recall over requests</title>{"".join(parts)}</svg>\n'
    )


def recall_at(run: EvaluationRun, requests: float) -> float:
    """Share of relevant documents found within this many requests."""
    found = 0
    for spent, relevant, _ in run.curve:
        if spent > requests:
            break
        found = relevant
    return found / run.total


def _frame(evaluation: Evaluation) -> str:
    lines = [f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>']
    for tenth in range(0, 11, 2):
        y = _y(tenth / 10)
        lines.append(f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        lines.append(f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tenth / 10:.1f}</text>')
    for part in range(6):
        requests = evaluation.budget * part / 5
        x = _x(requests, evaluation.budget)
        lines.append(f'<text x="{x:.1f}" y="{_HEIGHT - _BOTTOM + 18}" text-anchor="middle">{requests:.0f}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    lines.append(f'<text x="{middle:.0f}" y="{_HEIGHT - 10}" text-anchor="middle">requests of any kind</text>')
    family = escape(evaluation.family.replace("_", "-"))
    caption = f"Recall of relevant documents, {evaluation.seeds} webs of {evaluation.sites} sites, {family} templates"
    lines.append(f'<text x="{_LEFT}" y="18" font-weight="bold">{caption}</text>')
    return "".join(lines)


def _line(name: str, runs: Sequence[EvaluationRun], budget: int, colour: str, place: int) -> str:
    steps = [budget * step / _STEPS for step in range(_STEPS + 1)]
    values = [[recall_at(run, step) for run in runs] for step in steps]
    points = list(zip(steps, values, strict=True))
    upper = [f"{_x(step, budget):.1f},{_y(max(row)):.1f}" for step, row in points]
    lower = [f"{_x(step, budget):.1f},{_y(min(row)):.1f}" for step, row in reversed(points)]
    means = [f"{_x(step, budget):.1f},{_y(sum(row) / len(row)):.1f}" for step, row in points]
    y = _TOP + 20 + 20 * place
    x = _WIDTH - _RIGHT + 12
    return (
        f'<polygon points="{" ".join(upper + lower)}" fill="{colour}" opacity="0.12"/>'
        f'<polyline points="{" ".join(means)}" fill="none" stroke="{colour}" stroke-width="2"/>'
        f'<line x1="{x}" x2="{x + 18}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>'
        f'<text x="{x + 24}" y="{y + 4}">{escape(name)}</text>'
    )


def _x(requests: float, budget: int) -> float:
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * requests / max(1, budget)


def _y(recall: float) -> float:
    return _TOP + (_HEIGHT - _TOP - _BOTTOM) * (1 - recall)
