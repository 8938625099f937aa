"""A plain crawler for tests: reads the web's actual bytes with real parsers and knows nothing of its plan.

It is slow and impolite on purpose of being obviously right: http.client, lxml and protego, one page after the other.
"""

from __future__ import annotations

import gzip
import http.client
import json
import re
from collections import deque
from collections.abc import Iterator
from typing import cast
from urllib.parse import urljoin, urlsplit

from lxml import etree, html
from protego import Protego

_OPTIONAL = re.compile(r"PHPSESSID=|[?&](sort|view|q)=|/calendar/|/search\b")
_ITEM_PATHS = ("//item/link/text()", "//*[local-name()='entry']/*[local-name()='link']/@href")


class Got:
    """One answer, decoded from its content coding."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


class Reader:
    """Fetches by host name from one loopback port, and crawls."""

    def __init__(self, port: int, agent: str = "Quadloom/0.1") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        self._agent = agent
        self._robots: dict[str, Protego] = {}

    def get(self, url: str, **headers: str) -> Got:
        parts = urlsplit(url)
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        sent = {"Host": parts.netloc, "User-Agent": self._agent, "Accept-Encoding": "gzip", "Accept": "text/html"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        self._connection.request("GET", target, headers=sent)
        answer = self._connection.getresponse()
        body = answer.read()
        given = {name.lower(): value for name, value in answer.getheaders()}
        if given.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        return Got(answer.status, given, body)

    def crawl(self, seeds: list[str], hosts: set[str]) -> dict[str, Got]:
        """Everything that can be found on these hosts by following the rules."""
        found: dict[str, Got] = {}
        queue = deque(seeds)
        while queue:
            url = queue.popleft()
            host = urlsplit(url).netloc
            if url in found or host not in hosts:
                continue
            if host not in self._robots:
                queue.extend(self._enter(host))
            if not self._robots[host].can_fetch(url, self._agent):
                continue
            got = found[url] = self.get(url)
            if got.status == 503:
                got = found[url] = self.get(url)
            queue.extend(target for target in leads(url, got) if target not in found)
        return found

    def _enter(self, host: str) -> Iterator[str]:
        got = self.get(f"http://{host}/robots.txt")
        self._robots[host] = robots = Protego.parse(got.body.decode() if got.status == 200 else "")
        for sitemap in robots.sitemaps:
            yield from self._listed(sitemap)

    def _listed(self, url: str) -> Iterator[str]:
        body = self.get(url).body
        root = etree.fromstring(gzip.decompress(body) if url.endswith(".gz") else body)
        places = [place.text or "" for place in root.iter("{*}loc")]
        if root.tag.endswith("sitemapindex"):
            for place in places:
                yield from self._listed(place)
        else:
            yield from places


def leads(url: str, got: Got) -> Iterator[str]:
    """URLs that a crawler has to follow from this answer."""
    if 300 <= got.status < 400:
        yield urljoin(url, got.headers["location"])
        return
    if got.status != 200 or "nofollow" in got.headers.get("x-robots-tag", ""):
        return
    start = got.body.replace(b"\0", b"").lstrip(b"\xff\xfe\xef\xbb\xbf")[:300].lower()
    if b"<!doctype html" in start:
        yield from _html_leads(url, got.body)
    elif b"<rss" in start or b"<feed" in start or b"purl.org/rss/1.0/" in start:
        root = etree.fromstring(got.body)
        yield from (str(place) for path in _ITEM_PATHS for place in cast(list[str], root.xpath(path)))
        yield from (link.text or "" for link in root.iter("{http://purl.org/rss/1.0/}link"))
    elif b"jsonfeed.org" in start:
        yield from (item["url"] for item in json.loads(got.body)["items"])


def _html_leads(url: str, body: bytes) -> Iterator[str]:
    tree = html.document_fromstring(body)
    if any("nofollow" in value for value in cast(list[str], tree.xpath("//meta[@name='robots']/@content"))):
        return
    anchors = cast(list[html.HtmlElement], tree.xpath("//a[@href] | //link[@rel='alternate'][@href]"))
    for anchor in anchors:
        target = urljoin(url, anchor.get("href", ""))
        if "nofollow" not in anchor.get("rel", "") and target.startswith("http:") and not _OPTIONAL.search(target):
            yield target
