"""A crawl as one HTML file: no network, no scripts, light and dark, printable. `quadloom report` writes it.

The file uses the style sheet of the site, and the same charts; links of its pictures lead to rows of its own tables.
"""

from __future__ import annotations

from markupsafe import Markup

from quadloom.asking.report.crawl_summary import CrawlSummary
from quadloom.asking.report.numbers import LABELS, labelled
from quadloom.asking.things.paths import type_name
from quadloom.web.view import filters
from quadloom.web.view.charts import Mark, bars, timeline, world
from quadloom.web.view.environment import report_document
from quadloom.web.view.pictures import NetworkEdge, Node, network, schema_network

_MAX_TYPES = 15
_MAX_SITES = 24


def report_html(summary: CrawlSummary, *, title: str, now: float) -> str:
    """The whole document."""
    places = {one.iri: place for place, one in enumerate(summary.schema.classes)}  # rows of the table of types
    return report_document(
        "crawl_report.html",
        summary=summary,
        title=title,
        now=now,
        tiles=_tiles(summary),
        types=bars([Mark(type_name(iri), count) for iri, count in summary.types[:_MAX_TYPES]], "Things by type"),
        map=world([Mark(one.name, one.longitude, one.latitude) for one in summary.places], "Places"),
        timeline=timeline([Mark(one.name, one.at) for one in summary.dates], "Dates"),
        schema=Markup(schema_network(summary.schema, lambda one: f"#type-{places[one.iri]}") if places else ""),
        sites=Markup(_sites(summary)),
    )


def _tiles(summary: CrawlSummary) -> list[tuple[str, str, str]]:
    """(label, value, tone). Of a single site its own pages are counted."""
    outcomes = dict(summary.outcomes)
    if summary.numbers is not None:
        found = [(label, filters.number(count), "") for label, count in labelled(summary.numbers)]
    else:
        content = sum(count for _, count in summary.kinds)
        found = [
            (LABELS["pages_visited"], filters.number(summary.sampled), ""),
            (LABELS["pages_with_content"], filters.number(content), ""),
        ]
    failed = outcomes.get("failed", 0) + outcomes.get("denied", 0)
    errors = summary.audit.count("error")
    found.append(("pages failed or denied", filters.number(failed), "bad" if failed else "good"))
    found.append(("errors in the data", filters.number(errors), "bad" if errors else "good"))
    if summary.audit.score is not None:
        found.append(("score of the data, of 100", f"{summary.audit.score:.0f}", ""))
    return found


def _sites(summary: CrawlSummary) -> str:
    """Links between sites; empty if there is only one."""
    pages = dict(summary.sites)
    shown = list(dict.fromkeys(site for link in summary.links for site in (link.source, link.target)))[:_MAX_SITES]
    nodes = {site: Node(f"{site} · {pages.get(site, 0)}", f"#site-{place}", site) for place, site in enumerate(shown)}
    most = max((link.links for link in summary.links), default=1)
    edges = [
        NetworkEdge(nodes[link.source], nodes[link.target], str(link.links), link.links / most)
        for link in summary.links
        if link.source in nodes and link.target in nodes
    ]
    return network(edges, title="Links between sites", nodes=list(nodes.values())) if edges else ""
