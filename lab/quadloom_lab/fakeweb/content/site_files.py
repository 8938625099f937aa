"""What a site has besides pages: robots.txt, sitemaps, its own search and the description of that search."""

from __future__ import annotations

import gzip
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from quadloom_lab.fakeweb.content.feeds import DAY, EPOCH, iso
from quadloom_lab.fakeweb.sites.hosts import HostPlan
from quadloom_lab.fakeweb.sites.layout import PER_SITEMAP, Layout, PageRef
from quadloom_lab.fakeweb.sites.links import LinkPlan
from quadloom_lab.fakeweb.sites.traits import changed_at, vanished

PRODUCT = "quadloom"  # the crawler that the `agent` style of robots.txt has a group for


class RobotsLine(NamedTuple):
    allow: bool
    pattern: str


# Three nested patterns: a crawler that lets any Allow win, or the first match, is wrong on one of them.
_PATTERNS = (
    RobotsLine(False, "/private/"),
    RobotsLine(True, "/private/open-"),
    RobotsLine(False, "/private/open-2"),
    RobotsLine(False, "/*?sort="),
    RobotsLine(False, "/search"),
)


def robots_rules(host: HostPlan, agent: str) -> tuple[RobotsLine, ...]:
    """The rules of the group that this crawler has to obey; none if there is no robots.txt."""
    match host.robots:
        case "none":
            return ()
        case "plain" | "delay":
            return (RobotsLine(False, "/private/"),)
        case "patterns":
            return _PATTERNS
        case "agent":
            return (
                (RobotsLine(False, "/private/*2$"),) if PRODUCT in agent.lower() else (RobotsLine(False, "/private/"),)
            )


def robots_text(layout: Layout, host: HostPlan) -> str | None:
    """The file, or None for hosts that have none."""
    if host.robots == "none":
        return None
    lines = ["# robots.txt of " + host.title, "User-agent: *"]
    lines += _rule_lines(robots_rules(host, "other"))
    if host.robots == "delay":
        lines.append(f"Crawl-delay: {layout.spec.crawl_delay:g}")
    if host.robots == "agent":
        lines += ["", "User-agent: Quadloom", *_rule_lines(robots_rules(host, PRODUCT))]
    if host.sitemap != "none":
        lines += ["", f"Sitemap: {layout.url(PageRef(host.index, 'sitemap'))}"]
    return "\n".join(lines) + "\n"


def _rule_lines(rules: tuple[RobotsLine, ...]) -> list[str]:
    return [f"{'Allow' if rule.allow else 'Disallow'}: {rule.pattern}" for rule in rules]


def allowed(host: HostPlan, target: str, agent: str = PRODUCT) -> bool:
    """RFC 9309: the longest matching pattern decides, Allow wins a tie, robots.txt itself is always allowed."""
    if target == "/robots.txt":
        return True
    matching = [rule for rule in robots_rules(host, agent) if _expression(rule.pattern).match(target)]
    if not matching:
        return True
    return max(matching, key=lambda rule: (len(rule.pattern), rule.allow)).allow


@lru_cache(maxsize=64)
def _expression(pattern: str) -> re.Pattern[str]:
    ending = "$" if pattern.endswith("$") else ""
    return re.compile(".*".join(map(re.escape, pattern.removesuffix("$").split("*"))) + ending)


def sitemap_refs(layout: Layout, host: HostPlan, position: int, revision: int) -> list[PageRef]:
    """What a sitemap file lists: further files for an index, else pages. Hidden pages are listed in the first file."""
    files = layout.sitemap_files(host, revision)
    if files and position == 0:
        return [PageRef(host.index, "sitemap", k) for k in range(1, files + 1)]
    size = layout.size(host, revision)
    start = (position - 1) * PER_SITEMAP if files else 0
    end = min(start + PER_SITEMAP, size) if files else size
    if host.registry:
        return [PageRef(host.index, "page", item) for item in range(start, end)]
    found = [PageRef(host.index, "item", item) for item in range(start, end)]
    found = [ref for ref in found if layout.is_html(ref) and not vanished(layout, ref, revision)]
    if start == 0:
        found += [PageRef(host.index, "hidden", k) for k in range(layout.corners)]
    return found


def sitemap_body(layout: Layout, host: HostPlan, position: int, revision: int) -> bytes:
    refs = sitemap_refs(layout, host, position, revision)
    outer, inner = ("sitemapindex", "sitemap") if refs and refs[0].area == "sitemap" else ("urlset", "url")
    rows = "".join(
        f"<{inner}><loc>{escape(layout.url(ref))}</loc>"
        f"<lastmod>{iso(EPOCH + DAY * changed_at(layout, ref, revision))}</lastmod></{inner}>\n"
        for ref in refs
    )
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{outer} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{rows}</{outer}>\n'
    packed = position and position % 2 == 0
    return gzip.compress(text.encode(), 6, mtime=0) if packed else text.encode()


def opensearch(layout: Layout, host: HostPlan) -> str:
    base = layout.bases[host.index]
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<OpenSearchDescription xmlns="http://a9.com/-/spec/opensearch/1.1/">'
        f"<ShortName>{escape(host.title[:16])}</ShortName><Description>Search {escape(host.title)}</Description>"
        f'<Url type="text/html" template="{base}/search?q={{searchTerms}}&amp;page={{startPage?}}" pageOffset="0"/>'
        f'<Url type="application/rss+xml" template="{base}/search.rss?q={{searchTerms}}"/>'
        "</OpenSearchDescription>\n"
    )


class SiteSearchHits(NamedTuple):
    query: str
    page: int
    total: int
    links: list[LinkPlan]


class SiteSearch:
    """A site's own search: pages whose title contains all words of the query, in page order."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._titles: dict[int, list[tuple[str, int]]] = {}

    def find(self, host: HostPlan, query_string: str) -> SiteSearchHits:
        fields = parse_qs(query_string)
        query = fields.get("q", [""])[0][:200]
        page = int(number) if (number := fields.get("page", ["0"])[0]).isdecimal() and len(number) < 5 else 0
        words = query.lower().split()
        found = [item for title, item in self._titles_of(host) if words and all(word in title for word in words)]
        links = [
            LinkPlan(
                self._layout.bases[host.index] + self._layout.item_path(host.index, item),
                self._layout.name(host, item),
                "item",
            )
            for item in found[page * 10 : page * 10 + 10]
        ]
        return SiteSearchHits(query, page, len(found), links)

    def _titles_of(self, host: HostPlan) -> list[tuple[str, int]]:
        known = self._titles.get(host.index)
        if known is None:
            items = (item for item in range(host.size) if self._layout.form(host.index, item) == "html")
            known = [(self._layout.name(host, item).lower(), item) for item in items]
            self._titles[host.index] = known
        return known
