"""An audit as one HTML file without anything from elsewhere: it can be sent to somebody who has no Quadloom."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from html import escape

from quadloom.asking.audit.report import AuditReport, DefectGroup, SiteAudit, TrendPoint
from quadloom.documents.checks.codes import codes
from quadloom.model.timestamps import day

_MOST_GROUPS = 200
_MOST_TEMPLATES = 15
_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--quiet:#5b6675;--paper:#fff;--card:#f5f7fa;--line:#d9dfe7;--bad:#b3261e;
--warn:#8a5a00;--good:#1b6e3c;--bar:#3b6ea8}
@media(prefers-color-scheme:dark){:root{--ink:#e8ecf2;--quiet:#a3adbb;--paper:#12161c;--card:#1b212a;--line:#313a46;
--bad:#ff8a80;--warn:#ffc46b;--good:#7fd6a0;--bar:#7fb0e6}}
*{box-sizing:border-box}body{margin:0;font:16px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper)}
main{max-width:64rem;margin:auto;padding:1.5rem 1rem 4rem}h1{margin:.2rem 0 .3rem;font-size:1.7rem}
h2{margin:2.2rem 0 .6rem;font-size:1.25rem}.quiet{color:var(--quiet)}.tiles{display:grid;gap:.8rem;
grid-template-columns:repeat(auto-fit,minmax(7.5rem,1fr));margin:1.2rem 0}.tile{background:var(--card);
padding:.8rem 1rem;border-radius:.6rem;border:1px solid var(--line)}.tile b{display:block;
font-size:1.6rem;line-height:1.2}
.error{color:var(--bad)}.warning{color:var(--warn)}.good{color:var(--good)}.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .7rem .35rem 0;vertical-align:top;
border-bottom:1px solid var(--line)}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}
.bar{display:flex;height:.6rem;margin-top:.45rem;border-radius:.3rem;overflow:hidden;background:var(--line);
min-width:5rem}.bar i{background:var(--bar)}.bar .e{background:var(--bad)}.bar .w{background:var(--warn)}
article{border:1px solid var(--line);
border-left:.3rem solid var(--quiet);border-radius:.4rem;padding:.7rem 1rem;margin:.8rem 0;background:var(--card)}
article.e{border-left-color:var(--bad)}
article.w{border-left-color:var(--warn)}article h3{margin:0;font-size:1.02rem;overflow-wrap:anywhere}
article p{margin:.3rem 0}pre{overflow-x:auto;background:var(--paper);border:1px solid var(--line);padding:.5rem .7rem;
border-radius:.4rem;margin:.4rem 0;font-size:.85rem}code,pre{font-family:ui-monospace,monospace}
li{overflow-wrap:anywhere}a{color:var(--bar)}svg{max-width:100%;height:auto}svg text{fill:var(--quiet);font-size:12px}
"""
_SCROLL = '<div class="scroll" tabindex="0">'  # with the keyboard, too
_CLASS = {"error": "e", "warning": "w", "info": "i"}
_WORD = {"error": "Error", "warning": "Warning", "info": "Remark"}


# No character of HTML (C0, C1), and directional overrides, which make one address look like another.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def html_report(report: AuditReport, *, title: str, now: float) -> str:
    """The whole document."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head><body><main>",
        f'<p class="quiet">Structured data audit · {day(now)}</p><h1>{escape(title)}</h1>',
        _tiles(report),
        _actions(report),
        _sites(report),
        _types(report),
        _features(report),
        _templates(report),
        _trend(report.trend),
        _improved(report),
        "<h2>What to fix, by template</h2>",
        *(_group(group) for group in report.groups[:_MOST_GROUPS]),
    ]
    if not report.groups:
        parts.append("<p>Nothing was found.</p>")
    elif len(report.groups) > _MOST_GROUPS:
        parts.append(f'<p class="quiet">and {len(report.groups) - _MOST_GROUPS} more</p>')
    parts.append(f'<h2>How the score is made</h2><p class="quiet">{escape(report.formula)}.</p></main></body></html>\n')
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", "\n".join(part for part in parts if part))


def _tiles(report: AuditReport) -> str:
    with_data = sum(site.with_data for site in report.sites)
    score = sum(site.score * site.with_data for site in report.sites) / max(1, with_data)
    kind = "good" if score >= 90 else "warning" if score >= 60 else "error"
    tiles = [
        ("score of 100", f"{score:.0f}", kind) if with_data else ("no data to score", "–", ""),
        ("pages", f"{sum(site.pages for site in report.sites):,}", ""),
        ("with data", f"{with_data:,}", ""),
        ("errors", f"{report.count('error'):,}", "error" if report.count("error") else "good"),
        ("warnings", f"{report.count('warning'):,}", "warning" if report.count("warning") else "good"),
        ("new", f"{sum(site.new for site in report.sites):,}", ""),
        ("fixed", f"{sum(site.fixed for site in report.sites):,}", "good"),
    ]
    cells = "".join(f'<div class="tile"><b class="{kind}">{value}</b>{name}</div>' for name, value, kind in tiles)
    return f'<div class="tiles">{cells}</div>'


def _actions(report: AuditReport) -> str:
    worst = [group for group in report.groups if group.severity != "info"][:3]
    if not worst:
        return ""
    lines = "".join(f"<li><b>{escape(group.headline)}</b>.{_fix(group)}</li>" for group in worst)
    return f"<h2>Do this first</h2><ol>{lines}</ol>"


def _fix(group: DefectGroup) -> str:
    return f" Fix: {escape(group.fix)}." if group.fix else ""


def _score(site: SiteAudit) -> str:
    """Its cells: a site without data has no score."""
    if not site.with_data:
        return "<td></td><td class=n>–</td>"
    return f"<td>{_bar(site.score)}</td><td class=n>{site.score:.0f}</td>"


def _sites(report: AuditReport) -> str:
    rows = "".join(
        f"<tr><td>{escape(site.site)}</td>{_score(site)}"
        f"<td class=n>{site.pages:,}</td><td class=n>{site.with_data:,}</td><td class=n>{site.errors:,}</td>"
        f"<td class=n>{site.warnings:,}</td><td class=n>{site.new:,}</td><td class=n>{site.fixed:,}</td></tr>"
        for site in report.sites[:50]
    )
    head = _head("site", "", "score", "pages", "with data", "errors", "warnings", "new", "fixed")
    return f"<h2>Sites</h2>{_SCROLL}<table>{head}{rows}</table></div>"


def _types(report: AuditReport) -> str:
    merged: dict[str, list[float]] = {}
    for site in report.sites:
        for kind in site.types:
            sums = merged.setdefault(kind.type, [0, 0, 0, 0, 0.0])
            parts = (kind.pages, kind.items, kind.errors, kind.warnings, kind.score * kind.pages)
            for place, value in enumerate(parts):
                sums[place] += value
    if not merged:
        return ""
    most = max(sums[0] for sums in merged.values())
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{_bar(100 * pages / most)}</td><td class=n>{pages:,.0f}</td>"
        f"<td class=n>{items:,.0f}</td><td class=n>{errors:,.0f}</td><td class=n>{warnings:,.0f}</td>"
        f"<td class=n>{total / pages:.0f}</td></tr>"
        for name, (pages, items, errors, warnings, total) in sorted(merged.items(), key=lambda kind: -kind[1][0])[:25]
    )
    head = _head("type", "", "pages", "items", "errors", "warnings", "score")
    return f"<h2>Coverage by type</h2>{_SCROLL}<table>{head}{rows}</table></div>"


def _features(report: AuditReport) -> str:
    merged: dict[str, list[int]] = {}
    for site in report.sites:
        for feature in site.features:
            pair = merged.setdefault(feature.feature, [0, 0])
            pair[0] += feature.pages
            pair[1] += feature.eligible
    if not merged:
        return ""
    rows = "".join(
        f"<tr><td>{escape(name)}</td><td>{_bar(100 * eligible / pages)}</td>"
        f"<td class=n>{eligible:,} of {pages:,}</td></tr>"
        for name, (pages, eligible) in sorted(merged.items(), key=lambda one: -one[1][0])
    )
    head = _head("rich result", "", "eligible pages")
    return f"<h2>Rich results</h2>{_SCROLL}<table>{head}{rows}</table></div>"


def _templates(report: AuditReport) -> str:
    """Errors and warnings by template, as bars of two colours."""
    merged: dict[tuple[str, str], list[int]] = {}
    for group in report.groups:
        if group.severity != "info":
            pair = merged.setdefault((group.site, group.template), [0, 0])
            pair[group.severity == "warning"] += group.findings
    if not merged:
        return ""
    most = max(errors + warnings for errors, warnings in merged.values())
    worst = sorted(merged.items(), key=lambda one: (-one[1][0], -one[1][1], one[0]))[:_MOST_TEMPLATES]
    several = len({site for site, _ in merged}) > 1
    rows = "".join(
        f"<tr><td>{escape(f'{site}{template}' if several else template)}</td>"
        f'<td><span class="bar"><i class=e style="width:{100 * errors / most:.1f}%"></i>'
        f'<i class=w style="width:{100 * warnings / most:.1f}%"></i></span></td>'
        f"<td class=n>{errors:,}</td><td class=n>{warnings:,}</td></tr>"
        for (site, template), (errors, warnings) in worst
    )
    head = _head("pages under", "", "errors", "warnings")
    return f"<h2>Defects by template</h2>{_SCROLL}<table>{head}{rows}</table></div>"


def _improved(report: AuditReport) -> str:
    if not report.improved:
        return ""
    lines = "".join(f"<li>{escape(one.headline)}</li>" for one in report.improved[:_MOST_TEMPLATES])
    more = len(report.improved) - _MOST_TEMPLATES
    rest = f'<p class="quiet">and {more} more</p>' if more > 0 else ""
    return f'<h2 class="good">What improved</h2><ul>{lines}</ul>{rest}'


def _head(first: str, *others: str) -> str:
    return f"<tr><th>{first}</th>" + "".join(f"<th class=n>{name}</th>" for name in others) + "</tr>"


def _bar(share: float) -> str:
    return f'<span class="bar"><i style="width:{max(0.0, min(100.0, share)):.0f}%"></i></span>'


def _trend(points: tuple[TrendPoint, ...]) -> str:
    """Open errors and warnings over time, as a picture."""
    if len(points) < 2:
        return ""
    first, last = points[0].at, points[-1].at
    most = max(1, *(point.errors + point.warnings for point in points))

    def place(point: TrendPoint, value: int) -> str:
        return f"{40 + 580 * (point.at - first) / (last - first):.1f},{150 - 130 * value / most:.1f}"

    errors = " ".join(place(point, point.errors) for point in points)
    both = " ".join(place(point, point.errors + point.warnings) for point in points)
    return (
        "<h2>Open defects over time</h2>"
        '<svg viewBox="0 0 640 180" role="img" aria-label="Open errors and warnings over time">'
        f'<polyline points="{both}" fill="none" stroke="var(--warn)" stroke-width="2"/>'
        f'<polyline points="{errors}" fill="none" stroke="var(--bad)" stroke-width="2"/>'
        f'<text x="0" y="26">{most}</text><text x="0" y="152">0</text>'
        f'<text x="40" y="172">{_moment(first, last)}</text>'
        f'<text x="620" y="172" text-anchor="end">{_moment(last, first)}</text></svg>'
        '<p class="quiet"><span class="error">errors</span>, '
        '<span class="warning">errors and warnings</span></p>'
    )


def _group(group: DefectGroup) -> str:
    known = codes().get(group.code)
    examples = "".join(
        f'<li><a href="{escape(one.page)}">{escape(one.page)}</a>{f" line {one.line}" if one.line else ""}'
        f"{_linked_from(group, one.page)}</li>"
        for one in group.examples
    )
    first = next((one for one in group.examples if one.excerpt), None)
    source = ""
    if first is not None:
        caret = "\n" + " " * (first.caret - 1) + "^" if first.caret else ""
        source = f'<pre tabindex="0">{escape(first.excerpt)}{caret}</pre>'
    meaning = f'<p class="quiet">{escape(known.text)}</p>' if known else ""
    new = f" · {group.new} new" if group.new else ""
    return (
        f'<article class="{_CLASS[group.severity]}"><h3>{escape(group.headline)}</h3>'
        f'<p class="quiet"><span class="{group.severity}">{_WORD[group.severity]}</span> · '
        f"<code>{escape(group.code)}</code> · {escape(group.site)} · {escape(group.path)}{new}</p>{source}"
        f"<p><b>Fix:</b> {escape(group.fix or (known.fix if known else ''))}</p>{meaning}<ul>{examples}</ul></article>"
    )


def _linked_from(group: DefectGroup, page: str) -> str:
    """The pages on which a dead link is corrected."""
    pages = "".join(f'<li><a href="{escape(one)}">{escape(one)}</a></li>' for one in group.linked_from.get(page, ()))
    return f"<br>linked from<ul>{pages}</ul>" if pages else ""


def _moment(at: float, other: float) -> str:
    """A day, or a time of it if both are near each other."""
    near = abs(at - other) < 2 * 86400
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M" if near else "%Y-%m-%d")
