"""Searches of a site that a third party runs: Algolia's DocSearch, and `site:` queries of web search engines.

DocSearch runs in the visitor's browser, so the page contains what the browser needs: application, index, and a key that
can only search. If this is in an inline script, the same query can be sent without a browser: `POST
/1/indexes/INDEX/query`, as Algolia documents it. Its records are sections; the sections of a page become one result.

A configured web searcher that understands `site:host` is the last resort for a site whose search cannot be used. The
user decides whether any of these hosts may be queried: `topic.third_parties` and `topic.site_queries`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import quote, quote_plus

import msgspec

from quadloom.crawling.topical.forms.html_forms import parse_html
from quadloom.crawling.topical.search.engines import SearchLead
from quadloom.crawling.topical.search.json_answers import decoded
from quadloom.crawling.topical.search.result_formats import Json, plain
from quadloom.crawling.topical.search.results import ResultPage, SearchResult
from quadloom.model.url import resolve

BRAVE = "https://api.search.brave.com/res/v1/web/search"
_MAX_SCRIPT = 500_000
_MEMBER = r"""["']?\b{0}["']?\s*[:=]\s*["']([\w-]{{2,100}})["']"""
_APPLICATION, _KEY, _INDEX = (
    re.compile(_MEMBER.format(name))
    for name in (r"(?:appId|applicationId|app_id)", r"(?:apiKey|searchKey|api_key)", r"(?:indexName|index_name)")
)
_NEAR = 2000  # characters within which the three must be
_SHARED_APPLICATION = "BH4D9OD16A"  # the application of DocSearch up to version 2, if a page names none
_LEVELS = ("lvl1", "lvl0")
_DEEPER = ("lvl2", "lvl3", "lvl4", "lvl5", "lvl6")
_HITS = 50
_SNIPPET = 1200


def docsearch_leads(body: bytes | str, _url: str) -> list[SearchLead]:
    """The DocSearch in the inline scripts of a page; empty if there is none or something is missing."""
    tree = parse_html(body)
    if tree is None:
        return []
    for script in tree.iter("script"):
        text = (script.text or "")[:_MAX_SCRIPT]
        if "docsearch" in text.lower() or "algolia" in text.lower():
            lead = _lead(text)
            if lead is not None:
                return [lead]
    return []


def _lead(text: str) -> SearchLead | None:
    index = _INDEX.search(text)
    if index is None:
        return None
    near = text[max(0, index.start() - _NEAR) : index.end() + _NEAR]
    key, application = _KEY.search(near), _APPLICATION.search(near)
    if key is None:
        return None
    name = application.group(1) if application else _SHARED_APPLICATION
    if not name.isalnum():
        return None
    headers = (("X-Algolia-API-Key", key.group(1)), ("X-Algolia-Application-Id", name))
    address = f"https://{name.lower()}-dsn.algolia.net/1/indexes/{quote(index.group(1), safe='')}/query"
    return SearchLead("algolia", address, "algolia", _HITS, headers)


def algolia_payload(query: str, page: int) -> bytes:
    """The body of a query; the parameters are a query string within JSON."""
    return msgspec.json.encode({"params": f"query={quote_plus(query)}&hitsPerPage={_HITS}&page={page}"})


def read_algolia(body: bytes, url: str) -> ResultPage:
    """`hits` of DocSearch records (`hierarchy`, `content`, `url`) or of plain ones (`title`, `description`, `url`)."""
    tree = _decode(body)
    found: dict[str, SearchResult] = {}
    for row in _rows(tree.get("hits")):
        place = str(row.get("url") or row.get("permalink") or row.get("objectID") or "")
        target = resolve(place.partition("#")[0], url) if place.startswith(("http://", "https://", "/")) else None
        if target is None:
            continue
        levels = row.get("hierarchy")
        levels = levels if isinstance(levels, dict) else {}
        title = next((str(levels[name]) for name in _LEVELS if levels.get(name)), "") or str(row.get("title") or "")
        words = [str(levels[name]) for name in _DEEPER if levels.get(name)]
        words.append(str(row.get("content") or row.get("description") or ""))
        old = found.get(target)
        snippet = f"{old.snippet if old else ''} {plain(' '.join(words))}".strip()[:_SNIPPET]
        found[target] = SearchResult(
            target, old.title if old else plain(title), snippet, old.rank if old else len(found)
        )
    total = tree.get("nbHits")
    return ResultPage(tuple(found.values()), total if isinstance(total, int) else -1)


def site_leads(searchers: Sequence[str], brave_key: str) -> Callable[[str], list[SearchLead]]:
    """For a host, the leads that query the configured web searchers (`searxng:URL`, `brave:`) for that host only."""

    def leads(host: str) -> list[SearchLead]:
        about = f"{quote_plus(f'site:{host}')}+{{searchTerms}}"
        found = []
        for searcher in searchers:
            kind, _, base = searcher.partition(":")
            if kind == "searxng" and base:
                template = f"{base.rstrip('/')}/search?q={about}&format=json&pageno={{page}}"
                found.append(SearchLead("websearch", template, "searxng"))
            elif kind == "brave" and brave_key:
                headers = (("X-Subscription-Token", brave_key), ("Accept", "application/json"))
                found.append(
                    SearchLead("websearch", f"{BRAVE}?q={about}&count=20&offset={{page0}}", "brave", 20, headers)
                )
        return found

    return leads


def read_searxng(body: bytes, url: str) -> ResultPage:
    return _web_results(_rows(_decode(body).get("results")), url, "content")


def read_brave(body: bytes, url: str) -> ResultPage:
    web = _decode(body).get("web")
    return _web_results(_rows(web.get("results") if isinstance(web, dict) else None), url, "description")


def _web_results(rows: list[Json], url: str, words: str) -> ResultPage:
    results: list[SearchResult] = []
    for row in rows:
        place = str(row.get("url") or "")
        target = resolve(place, url) if place else None
        if target is not None:
            title, snippet = plain(str(row.get("title") or "")), plain(str(row.get(words) or ""))[:_SNIPPET]
            results.append(SearchResult(target, title, snippet, len(results)))
    return ResultPage(tuple(results))


def _decode(body: bytes) -> Json:
    tree = decoded(body)
    return tree if isinstance(tree, dict) else {}


def _rows(value: object) -> list[Json]:
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
