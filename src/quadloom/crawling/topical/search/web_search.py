"""Web searchers: a broad query in, sites out. The results of several are combined by reciprocal rank fusion.

`searxng:URL` (JSON must be enabled on the instance), `brave:` (key in the environment as QUADLOOM_BRAVE_KEY),
`file:PATH` (one URL per line, or JSON), `warehouse:` (sites crawled before). Each gives ranked hits; the score of a
site is the sum of 1 / (60 + rank) over its hits in all lists (Cormack, Clarke and Büttcher 2009). Liu and Agah use home
pages only, which drops every site whose home page does not rank; here that is an option, not the default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import quote_plus, urlencode, urlsplit

import msgspec

from quadloom.crawling.topical.access import SiteResponse
from quadloom.crawling.topical.search.hosted import BRAVE
from quadloom.crawling.topical.search.json_answers import decoded
from quadloom.crawling.topical.search.result_formats import plain
from quadloom.crawling.topical.sites import SeedSite
from quadloom.errors import SettingsError, UsageError
from quadloom.model.url import resolve
from quadloom.stores.protocols.text import SearchRequest, TextIndex

RRF = 60
Fetch = Callable[[str, tuple[tuple[str, str], ...]], SiteResponse | None]


class WebHit(msgspec.Struct, frozen=True):
    """One hit of a web searcher; `source`: its name."""

    url: str
    title: str = ""
    snippet: str = ""
    source: str = ""


class WebSearcher(Protocol):
    """Ranked hits for a query, at most `limit`. Empty = nothing found, or the service did not answer."""

    name: str

    def search(self, query: str, limit: int) -> list[WebHit]: ...


class SearxngSearcher:
    """`/search?format=json`. An instance without JSON answers 403, which is reported to the user and not retried."""

    name = "searxng"

    def __init__(self, base: str, fetch: Fetch) -> None:
        self._base = base.rstrip("/")
        self._fetch = fetch

    def search(self, query: str, limit: int) -> list[WebHit]:
        hits: list[WebHit] = []
        for page in range(1, 11):
            answer = self._fetch(f"{self._base}/search?{urlencode({'q': query, 'format': 'json', 'pageno': page})}", ())
            if answer is not None and answer.status == 403:
                raise UsageError(
                    f"{self._base} refuses JSON", hint="enable `json` under search.formats in its settings.yml"
                )
            rows = _rows(answer, "results")
            hits += [_hit(row, "url", "content", self.name) for row in rows]
            if not rows or len(hits) >= limit:
                break
        return [hit for hit in hits if hit.url][:limit]


class BraveSearcher:
    """Brave's web search API, 20 hits per page."""

    name = "brave"

    def __init__(self, key: str, fetch: Fetch, address: str = BRAVE) -> None:
        if not key:
            raise SettingsError("no key for Brave search", hint="set QUADLOOM_BRAVE_KEY in the environment")
        self._headers = (("X-Subscription-Token", key), ("Accept", "application/json"))
        self._fetch = fetch
        self._address = address

    def search(self, query: str, limit: int) -> list[WebHit]:
        hits: list[WebHit] = []
        for page in range(10):
            url = f"{self._address}?q={quote_plus(query)}&count=20&offset={page}"
            rows = _rows(self._fetch(url, self._headers), "web", "results")
            hits += [_hit(row, "url", "description", self.name) for row in rows]
            if len(rows) < 20 or len(hits) >= limit:
                break
        return [hit for hit in hits if hit.url][:limit]


class FileSearcher:
    """A list of results from elsewhere: one URL per line (with a title after a tab), or JSON with `url` members."""

    name = "file"

    def __init__(self, path: Path) -> None:
        self._path = path

    def search(self, query: str, limit: int) -> list[WebHit]:
        try:
            text = self._path.read_text(encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot read {self._path}: {error.strerror}", hint="one URL per line") from None
        if text.lstrip().startswith(("[", "{")):
            return [hit for row in _json_rows(text) if (hit := _hit(row, "url", "snippet", self.name)).url][:limit]
        hits = []
        for line in text.splitlines():
            url, _, title = line.strip().partition("\t")
            href = resolve(url) if url and not url.startswith("#") else None
            if href:
                hits.append(WebHit(href, title, "", self.name))
        return hits[:limit]


class WarehouseSearcher:
    """Sites crawled before that have pages on the query."""

    name = "warehouse"

    def __init__(self, text: TextIndex) -> None:
        self._text = text

    def search(self, query: str, limit: int) -> list[WebHit]:
        answer = self._text.search(SearchRequest(text=query, limit=limit))
        return [WebHit(hit.id, hit.title, hit.snippet, self.name) for hit in answer.hits if resolve(hit.id)]


def sites_of(rankings: Sequence[Sequence[WebHit]], *, home_pages_only: bool = False) -> list[SeedSite]:
    """Sites by reciprocal rank fusion, best first. Every hit counts for its host, or only home pages."""
    scores: dict[str, float] = {}
    for hits in rankings:
        for rank, hit in enumerate(hits, 1):
            parts = urlsplit(hit.url)
            if home_pages_only and (parts.path.strip("/") or parts.query):
                continue
            home = f"{parts.scheme}://{parts.netloc}/"
            scores[home] = scores.get(home, 0.0) + 1.0 / (RRF + rank)
    return [SeedSite(home, score) for home, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]


def _rows(answer: SiteResponse | None, *path: str) -> list[dict[str, object]]:
    if answer is None or not answer.good:
        return []
    tree = decoded(answer.body)
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return [row for row in tree if isinstance(row, dict)] if isinstance(tree, list) else []


def _json_rows(text: str) -> list[dict[str, object]]:
    try:
        tree: object = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise UsageError(f"not JSON: {error}", hint="a list of objects with `url`, or one URL per line") from None
    if isinstance(tree, dict):
        tree = tree.get("results")
    return [row for row in tree if isinstance(row, dict)] if isinstance(tree, list) else []


def _hit(row: dict[str, object], place: str, words: str, source: str) -> WebHit:
    url = resolve(str(row.get(place) or "")) or ""
    return WebHit(url, plain(str(row.get("title") or "")), plain(str(row.get(words) or "")), source)
