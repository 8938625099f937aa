"""Defects that only several pages together show: one @id with different facts, and data that points to dead pages."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

import msgspec

from quadloom.asking.audit.across_links import Asked, listed_in_vain, missing_partners
from quadloom.asking.audit.report import PageFindings, pages_of
from quadloom.asking.statistics import all_rows
from quadloom.asking.urls import PageRows, fingerprint_of, page_of
from quadloom.model.finding import Finding
from quadloom.model.outcome import Outcome, PageRow
from quadloom.model.url import host_of, site_of
from quadloom.settings import AuditSettings
from quadloom.stores.opened import Stores

_MAX_ROWS = 2000
_FACTS = "name price priceCurrency startDate endDate birthDate telephone isbn gtin13 sku datePublished foundingDate"
_LINKS = "image logo url sameAs contentUrl thumbnailUrl mainEntityOfPage"
_OTHER_LINKS = "<http://ogp.me/ns#image> <http://ogp.me/ns#url> <http://ogp.me/ns#video>"
_SUSPECTS = """SELECT ?s ?p
WHERE {{ VALUES ?p {{ {terms} }} GRAPH ?g {{ ?s ?p ?o }} FILTER(isIRI(?s) && isLiteral(?o)) }}
GROUP BY ?s ?p (LANG(?o) AS ?language) HAVING (COUNT(DISTINCT STR(?o)) > 1 && COUNT(DISTINCT ?g) > 1)
ORDER BY ?s ?p LIMIT {most}"""
_STATED = """SELECT ?s ?p (LANG(?o) AS ?language) (STR(?o) AS ?value) ?g
WHERE {{ VALUES (?s ?p) {{ {pairs} }} GRAPH ?g {{ ?s ?p ?o }} FILTER(isLiteral(?o)) }}"""
_IDENTIFIERS = "sku gtin gtin8 gtin12 gtin13 gtin14 isbn"
_OF_THING = "gtin13 isbn datePublished releaseDate birthDate startDate"  # what no language and no seller changes
_SAME_THINGS = """SELECT ?k ?key ?p
WHERE {{ VALUES ?k {{ {keys} }} GRAPH ?g {{ ?s ?k ?key . {stated} }} FILTER(isLiteral(?key) && STR(?key) != "") }}
GROUP BY ?k ?key ?p ?currency HAVING (COUNT(DISTINCT STR(?o)) > 1 && COUNT(DISTINCT ?g) > 1)
ORDER BY ?key LIMIT {most}"""
_SAME_STATED = """SELECT ?k ?key ?p (STR(?o) AS ?value) ?g ?currency
WHERE {{ VALUES (?k ?key ?p) {{ {rows} }} GRAPH ?g {{ ?s ?k ?key . {stated} }} }}"""
_MAX_PAIRS = 200  # in one query
_QUOTES = re.compile(r'["\\\x00-\x1f]')
_IN_BRACKETS = re.compile(r'[^\x00-\x20<>"{}|^`\\]+\Z')  # an IRI of another store may be none
_LINKED = """SELECT DISTINCT ?g ?s ?p ?o
WHERE {{ VALUES ?p {{ {terms} }} GRAPH ?g {{ ?s ?p ?o }} FILTER(isIRI(?o)) }} LIMIT {most}"""
_DEAD = frozenset((Outcome.GONE, Outcome.FAILED))
_PAUSE_FACTOR = 10.0  # a server asks again when ten times as long has passed as the last answer took


class AcrossFindings(msgspec.Struct, frozen=True):
    """By page. `left_out`: why there are none, if they could not be looked for."""

    pages: dict[str, list[Finding]]
    left_out: str = ""


class AcrossCache:
    """What was found last, for the threads of a server. The questions read the whole quad store, 80 µs a page, so they
    are asked again only if something was committed since and some time has passed; one thread at a time does it, and
    the others take the last answer meanwhile."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[object, AcrossFindings] | None = None
        self._until = 0.0
        self._asking = threading.Lock()

    def get(self, mark: object, find: Callable[[], AcrossFindings]) -> AcrossFindings:
        """`mark`: of the last commit that the caller sees. What `find` raises is raised."""
        if (last := self._current(mark)) is not None:
            return last
        if not self._asking.acquire(blocking=self._last is None):
            assert self._last is not None
            return self._last[1]
        try:
            if (last := self._current(mark)) is not None:
                return last
            began = self._clock()
            found = find()
            self._last, self._until = (mark, found), self._clock() + _PAUSE_FACTOR * (self._clock() - began)
            return found
        finally:
            self._asking.release()

    def _current(self, mark: object) -> AcrossFindings | None:
        last = self._last
        return last[1] if last is not None and (last[0] == mark or self._clock() < self._until) else None


def audited_pages(
    stores: Stores, sites: Collection[str] = (), across: dict[str, list[Finding]] | None = None
) -> Iterator[PageFindings]:
    """Every page that was read, with its own findings and those that only several pages together show. All that counts
    or lists findings begins here, so that all counts agree. `sites` as in `pages_of`, `across` as in `with_across`."""
    return with_across(pages_of(stores.catalog, sites), stores, across)


def with_across(
    pages: Iterator[PageFindings], stores: Stores, across: dict[str, list[Finding]] | None = None
) -> Iterator[PageFindings]:
    """These pages with what was found across pages added to their own findings; None = it is looked for now."""
    across = across_pages(stores) if across is None else across
    found = {fingerprint_of(url): findings for url, findings in across.items()}
    for page in pages:
        more = found.get(page.row.fingerprint)
        yield PageFindings(page.row, (*page.findings, *more)) if more else page


def across_pages(stores: Stores, asked: Asked | None = None) -> dict[str, list[Finding]]:
    """What only several pages show, by page. Codes that the settings ignore are left out, and all without checks.
    `asked`: what answers queries instead of the store itself."""
    return found_across(asked or stores.quads.parts, stores.catalog, stores.settings.audit)


def found_across(asked: Asked, catalog: PageRows, wanted: AuditSettings) -> dict[str, list[Finding]]:
    """The same for pages that need not be in a warehouse."""
    found: dict[str, list[Finding]] = {}
    for url, finding in _all_across(asked, catalog) if wanted.checks else ():
        if finding.code not in wanted.ignore:
            found.setdefault(url, []).append(finding)
    return found


def _all_across(asked: Asked, catalog: PageRows) -> Iterator[tuple[str, Finding]]:
    for conflict in _conflicts(asked):
        name = conflict.predicate.rpartition("/")[2]
        finding = Finding(
            "id-conflict",
            f"{conflict.subject} has different values of {name} on {conflict.pages} pages",
            "warning",
            "index",
            advice="give each thing its own @id, or state the same everywhere",
            path=f"@id › {name}",
            found=conflict.value[:80],
            expected=f"one value, not also {conflict.other[:80]}",
        )
        yield conflict.page, finding
    yield from _same_things(asked)
    yield from missing_partners(asked, catalog)
    yield from listed_in_vain(asked, catalog)
    targets: dict[str, PageRow | None] = {}  # pages of a site point to the same logo
    for row in all_rows(asked, _LINKED.format(terms=f"{_terms(_LINKS)} {_OTHER_LINKS}", most=50 * _MAX_ROWS)):
        address = row["o"]
        if address not in targets:
            targets[address] = page_of(catalog, address)
        target = targets[address]
        if target is None or target.href == row["g"]:
            continue
        name = re.split(r"[/#]", row["p"])[-1]
        if target.kind == "redirect" and name == "sameAs":
            finding = Finding(
                "broken-data-link",
                "sameAs leads to an address that is redirected",
                "warning",
                "index",
                advice="write the address that it leads to, since sameAs names the thing by it",
                path=name,
                found=row["o"][:200],
                expected=target.final_url[:200],
            )
            yield row["g"], finding
        elif target.outcome in _DEAD:
            finding = Finding(
                "broken-data-link",
                f"{name} leads to {target.href}, which is {target.outcome.value}: {target.reason[:60]}",
                "warning",
                "index",
                advice="correct the address, or bring the page back",
                path=name,
                found=row["o"][:200],
                expected="an address that answers",
            )
            yield row["g"], finding


class _Conflict(NamedTuple):
    """Two pages that state different values, and none that both state. `page` states `value`."""

    subject: str
    predicate: str
    page: str
    value: str
    other: str
    pages: int


def _conflicts(asked: Asked) -> Iterator[_Conflict]:
    """Several values are no conflict as long as all pages share one. Pages in different parts of the store are not
    compared; those of one site are in one part."""
    suspects = [(row["s"], row["p"]) for row in all_rows(asked, _SUSPECTS.format(terms=_terms(_FACTS), most=_MAX_ROWS))]
    suspects = list(dict.fromkeys([one for one in suspects if _IN_BRACKETS.match(one[0])]))
    for start in range(0, len(suspects), _MAX_PAIRS):
        pairs = " ".join(f"(<{subject}> <{predicate}>)" for subject, predicate in suspects[start : start + _MAX_PAIRS])
        stated: dict[tuple[str, str, str], dict[str, set[str]]] = {}
        for row in all_rows(asked, _STATED.format(pairs=pairs)):
            key = (row["s"], row["p"], row["language"])
            stated.setdefault(key, {}).setdefault(row["g"], set()).add(row["value"])
        for (subject, predicate, _), by_page in sorted(stated.items()):
            first = min(by_page)
            other = next((page for page in sorted(by_page) if by_page[page].isdisjoint(by_page[first])), None)
            if other is not None:
                yield _Conflict(subject, predicate, first, min(by_page[first]), min(by_page[other]), len(by_page))


def _same_things(asked: Asked) -> Iterator[tuple[str, Finding]]:
    """Things of one site that have the same number, such as a product's, and differ in a fact: in the price in one
    currency, or in what neither languages nor sellers change."""
    for stated in (
        f"VALUES ?p {{ {_terms(_OF_THING)} }} ?s ?p ?o",
        f"?s {_either('offers')} ?of . ?of ?p ?o ; {_either('priceCurrency')} ?currency "
        f"VALUES ?p {{ {_terms('price')} }}",
    ):
        query = _SAME_THINGS.format(keys=_terms(_IDENTIFIERS), stated=stated, most=_MAX_ROWS)
        suspects = [(one["k"], one["key"], one["p"]) for one in all_rows(asked, query) if one["k"] != one["p"]]
        suspects = [one for one in dict.fromkeys(suspects) if not _QUOTES.search(one[1])]
        for start in range(0, len(suspects), _MAX_PAIRS):
            some = suspects[start : start + _MAX_PAIRS]
            rows = " ".join(f'(<{number}> "{key}" <{predicate}>)' for number, key, predicate in some)
            found: dict[tuple[str, ...], dict[str, set[str]]] = {}
            for one in all_rows(asked, _SAME_STATED.format(rows=rows, stated=stated)):
                site = site_of(host_of(one["g"]))
                by_page = found.setdefault((one["k"], one["key"], one["p"], site, one.get("currency", "")), {})
                by_page.setdefault(one["g"], set()).add(one["value"])
            for (number, key, predicate, *_), by_page in sorted(found.items()):
                first = min(by_page)
                other = next((page for page in sorted(by_page) if by_page[page].isdisjoint(by_page[first])), None)
                if other is not None:
                    yield first, _conflict_of(number, key, predicate, by_page, first, other)


def _conflict_of(
    number: str, key: str, predicate: str, by_page: dict[str, set[str]], first: str, other: str
) -> Finding:
    kind, name = (one.rpartition("/")[2] for one in (number, predicate))
    return Finding(
        "id-conflict",
        f"the thing with {kind} {key[:40]} has different values of {name} on {len(by_page)} pages; see {other[:120]}",
        "warning",
        "index",
        advice="state the same everywhere, or give different things different numbers",
        path=f"{kind} › {name}",
        found=min(by_page[first])[:80],
        expected=f"one value, not also {min(by_page[other])[:80]}",
    )


def _either(name: str) -> str:
    return f"(<http://schema.org/{name}>|<https://schema.org/{name}>)"


def _terms(names: str) -> str:
    return " ".join(f"<{scheme}://schema.org/{name}>" for name in names.split() for scheme in ("http", "https"))
