"""The simulated web of the topical benchmark: answers requests in this process, with the bytes that servers would send.

No crawler sees more than `respond` gives: HTML with navigation, forms, ads, paging, feeds and the APIs of common
engines. The labels (`labels`, `canonical`) are for the evaluation only.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from quadloom_lab.topical.engines import Engine, make_engine
from quadloom_lab.topical.pages import NUMBERED, SitePages
from quadloom_lab.topical.sites import SitePlan

HTML = "text/html; charset=utf-8"


class Response(NamedTuple):
    status: int
    content_type: str
    body: bytes
    location: str = ""


class TopicalWeb:
    """All sites of a plan behind one function."""

    def __init__(self, plans: Sequence[SitePlan]) -> None:
        self.plans = {plan.host: plan for plan in plans}
        self._sites = {plan.host: _Site(plan) for plan in plans}

    def respond(self, url: str, method: str = "get", fields: Sequence[tuple[str, str]] = ()) -> Response:
        parts = urlsplit(url)
        site = self._sites.get(parts.netloc)
        if site is None:
            return Response(0, "", b"")
        asked = dict(parse_qsl(parts.query, keep_blank_values=True)) | (dict(fields) if method == "post" else {})
        return site.respond(unquote(parts.path) or "/", asked, method)

    def homes(self) -> list[str]:
        return [f"http://{host}/" for host in self.plans]

    def truth(self, topic: int) -> dict[str, int]:
        """URL → number of the distinct document, for every relevant document; copies share a number."""
        numbers: dict[tuple[str, ...], int] = {}
        found = {}
        for plan in self.plans.values():
            for placed in plan.documents:
                if placed.text.topic == topic:
                    number = numbers.setdefault(placed.text.words, len(numbers))
                    found[f"http://{plan.host}{placed.path}"] = number
        return found


class _Site:
    """One site: routes, engine (built on first use) and pages."""

    def __init__(self, plan: SitePlan) -> None:
        self.plan = plan
        self.pages = SitePages(plan)
        self._engine: Engine | None = None
        self._by_path = {placed.path: number for number, placed in enumerate(plan.documents)}

    def respond(self, path: str, asked: Mapping[str, str], method: str) -> Response:
        if path == "/robots.txt":
            return Response(200, "text/plain", self.pages.robots())
        number = self._by_path.get(path)
        if number is None and path == "/" and "p" in asked and len(asked) == 1:
            number = self._by_path.get(f"/?p={asked['p']}")
        if number is not None:
            return Response(200, HTML, self.pages.article(number))
        if path == "/" and not asked.keys() & {"s", "q"}:
            return Response(200, HTML, self.pages.home())
        if path.startswith("/topics/"):
            return self._section(path)
        if path == "/out":
            return Response(302, HTML, b"", asked.get("u", "/"))
        if path.startswith("/ad/"):
            return Response(200, HTML, self.pages.plain("Offers", "Buy now and save. " * 20))
        if path == "/sitemap.xml" and self.plan.sitemap:
            return Response(200, "application/xml", self.pages.sitemap())
        return self._search(path, asked, method) or self._missing()

    def _section(self, path: str) -> Response:
        tail = path.removeprefix("/topics/")
        if not tail.isdigit() or int(tail) >= self.pages.sections:
            return self._missing()
        return Response(200, HTML, self.pages.section(int(tail)))

    def _missing(self) -> Response:
        body = self.pages.plain("Not found", "The page you are looking for is not here.")
        return Response(200 if self.plan.soft_404 else 404, HTML, body)

    def _found(self, query: str) -> list[int]:
        if self._engine is None:
            documents = [(d.text.title, d.text.body, d.text.day) for d in self.plan.documents]
            self._engine = make_engine(self.plan.engine, documents)
        return self._engine.search(query)

    def _search(self, path: str, asked: Mapping[str, str], method: str) -> Response | None:
        kind = self.plan.search
        if kind in ("form", "searchaction") and path == "/search":
            return self._html_results(asked)
        if kind == "post-form" and path == "/find":
            if method == "post" and asked.get("token") != "t0k3n":
                return Response(403, HTML, self.pages.plain("Forbidden", "Bad token."))
            return self._html_results(asked)
        if kind == "opensearch" and path == "/feed":
            return self._feed(asked)
        if kind == "opensearch" and path == "/osd.xml":
            return Response(200, "application/opensearchdescription+xml", self.pages.description())
        if kind == "wordpress":
            return self._wordpress(path, asked)
        if kind == "mediawiki" and path == "/w/api.php":
            return self._mediawiki(asked)
        if kind == "discourse" and path == "/search.json":
            return self._discourse(asked)
        if kind == "sphinx" and path == "/searchindex.js":
            return Response(200, "text/javascript", self.pages.sphinx_index())
        if kind == "mkdocs" and path == "/search/search_index.json":
            return Response(200, "application/json", self.pages.mkdocs_index())
        return None

    def _html_results(self, asked: Mapping[str, str]) -> Response:
        look, size = self.plan.look, self.plan.per_page
        query = asked.get("q", "")
        place = asked.get(look.page_parameter, "")
        offset = int(place) if place.isdigit() else 0
        if look.page_parameter in NUMBERED:
            offset = max(0, offset - 1) * size
        found = self._found(query)
        return Response(200, HTML, self.pages.results(query, found, offset))

    def _feed(self, asked: Mapping[str, str]) -> Response:
        page = max(1, int(asked.get("pw", "1") or 1)) if asked.get("pw", "1").isdigit() else 1
        found = self._found(asked.get("q", ""))
        size = self.plan.per_page
        return Response(200, "application/rss+xml", self.pages.feed(found, (page - 1) * size))

    def _wordpress(self, path: str, asked: Mapping[str, str]) -> Response | None:
        if path == "/wp-json/wp/v2/search":
            page = int(asked.get("page", "1"))
            size = min(100, int(asked.get("per_page", "10")))
            found = self._found(asked.get("search", ""))
            part = found[(page - 1) * size : page * size]
            rows = [{"id": n, "title": self.pages.title(n), "url": self.pages.url(n), "type": "post"} for n in part]
            return Response(200, "application/json", json.dumps(rows).encode())
        if path == "/" and "s" in asked:
            return self._html_results({"q": asked["s"], **{k: v for k, v in asked.items() if k != "s"}})
        return None

    def _mediawiki(self, asked: Mapping[str, str]) -> Response:
        found = self._found(asked.get("srsearch", ""))
        offset, size = int(asked.get("sroffset", "0")), min(50, int(asked.get("srlimit", "10")))
        rows = [
            {
                "ns": 0,
                "title": self.pages.title(n),
                "pageid": n + 1,
                "snippet": self.pages.snippet(n, asked["srsearch"]),
            }
            for n in found[offset : offset + size]
        ]
        general = {"server": f"http://{self.plan.host}", "articlepath": "/wiki/$1"}
        answer = {"query": {"general": general, "searchinfo": {"totalhits": len(found)}, "search": rows}}
        return Response(200, "application/json", json.dumps(answer).encode())

    def _discourse(self, asked: Mapping[str, str]) -> Response:
        page = int(asked.get("page", "1") or "1")
        found = self._found(asked.get("q", ""))[(page - 1) * 10 : page * 10]
        topics = [{"id": n, "title": self.pages.title(n), "slug": "t"} for n in found]
        posts = [{"topic_id": n, "blurb": self.pages.snippet(n, asked.get("q", ""))} for n in found]
        return Response(200, "application/json", json.dumps({"topics": topics, "posts": posts}).encode())
