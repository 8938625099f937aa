"""What links promise and the crawl disproves: translations that do not link back, and entries of sitemaps that are
gone, redirected or not to be indexed. Only pages that were visited anyway are judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from quadloom.asking.statistics import all_rows
from quadloom.asking.urls import PageRows, fingerprint_of, page_of
from quadloom.model.finding import Finding
from quadloom.model.outcome import READ_OUTCOMES, Outcome, PageRow

_MOST_LINKS = 100_000
_SLICE = 1000
_TRANSLATIONS = f"""SELECT DISTINCT ?g ?o ?language
WHERE {{ GRAPH ?g {{ ?g <http://www.w3.org/1999/xhtml/vocab#alternate> ?o .
  ?o <http://www.w3.org/2000/01/rdf-schema#label> ?language }} }} LIMIT {_MOST_LINKS}"""
_LISTED = f"""SELECT DISTINCT ?g ?o
WHERE {{ GRAPH ?g {{ ?g <http://purl.org/dc/terms/hasPart> ?o }} FILTER(isIRI(?o)) }} LIMIT {_MOST_LINKS}"""
Asked = Callable[[str], Iterator[bytes]]
"""Answers to a SPARQL query as JSON, as `QuadStore.parts` gives them."""
_LANGUAGE = re.compile(r"(?:[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*|x-default)\Z")


def missing_partners(asked: Asked, catalog: PageRows) -> Iterator[tuple[str, Finding]]:
    """Pages that name a translation, by hreflang, which was read and does not name them."""
    named: dict[int | None, set[int | None]] = {}
    links: list[tuple[str, str, str]] = []
    for row in all_rows(asked, _TRANSLATIONS):
        if _LANGUAGE.match(row["language"]):
            named.setdefault(fingerprint_of(row["g"]), set()).add(fingerprint_of(row["o"]))
            links.append((row["g"], row["o"], row["language"]))
    for page, target, language in links:
        here, there = fingerprint_of(page), fingerprint_of(target)
        if here == there or here in named.get(there, ()):
            continue
        found = page_of(catalog, target)
        if found is None or (found.kind != "redirect" and found.outcome not in (*READ_OUTCOMES, Outcome.GONE)):
            continue
        state = _state(found) or "does not link back"
        if state == "asks not to be indexed":
            state = "does not link back"
        yield (
            page,
            Finding(
                "missing-hreflang",
                f"hreflang {language}: the page that it names {state}",
                "warning",
                "index",
                advice="let each page of the group name all of them, itself included",
                path=f"hreflang {language}",
                found=target[:200],
                expected=f'a link with rel="alternate" and hreflang to {page}'[:200],
            ),
        )


def listed_in_vain(asked: Asked, catalog: PageRows) -> Iterator[tuple[str, Finding]]:
    """Entries of sitemaps that no search engine can use."""
    listed: dict[str, list[str]] = {}
    for row in all_rows(asked, _LISTED):
        listed.setdefault(row["g"], []).append(row["o"])
    for sitemap, targets in listed.items():
        own = page_of(catalog, sitemap)
        if own is None or own.kind not in ("sitemap", "sitemapindex"):
            continue
        fingerprints = {number: target for target in targets if (number := fingerprint_of(target)) is not None}
        numbers = list(fingerprints)
        for start in range(0, len(numbers), _SLICE):
            for number, page in catalog.pages(numbers[start : start + _SLICE]).items():
                if state := _state(page):
                    yield sitemap, _useless(fingerprints[number], state)


def _useless(target: str, state: str) -> Finding:
    return Finding(
        "broken-sitemap-link",
        f"the sitemap lists an address that {state}",
        "warning",
        "index",
        advice="list only pages that answer and may be indexed, with their canonical address",
        syntax="sitemap",
        path=f"loc that {state.partition(':')[0]}",
        found=target[:200],
        expected="an address that answers with a page",
    )


def _state(row: PageRow) -> str:
    """What is wrong with an address; empty if nothing is."""
    if row.outcome is Outcome.GONE:
        return "is gone"
    if row.kind == "redirect":
        return "is redirected"
    if any(one.code == "noindex" for one in row.findings):
        return "asks not to be indexed"
    return ""
