"""What all strategies share: the topic's judge, the budget, and the record of everything that was asked and read."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_intdigest

from quadloom.model.url import canonical, host_of, site_of
from quadloom.topical.access import RequestSequence, SiteRequest, SiteResponse
from quadloom.topical.anchors import Anchor, PageOutline, read_sheet
from quadloom.topical.relevance import Example, Judge, Relevance, Topic

_RUNS_KEPT = 5000  # of one site
RELEVANT = 0.5  # a document counts as relevant from this probability on


class JudgedDocument(msgspec.Struct, frozen=True):
    """A page that was fetched and judged. `copy`: the same words were read before, under another address."""

    url: str
    verdict: float
    example: Example
    sheet: PageOutline
    copy: bool = False

    @property
    def worth(self) -> float:
        """What the judge gives for it: nothing for a copy."""
        return 0.0 if self.copy else self.verdict


class FoundDocument(msgspec.Struct, frozen=True):
    """A line of the report: a fetched document, how it was found, and what was thought of it before and after."""

    url: str
    title: str
    verdict: float
    estimate: float
    source: str  # result | index | link
    query: str = ""
    copy: bool = False
    isolated: bool = False  # no page that was read links to it


class TopicalRun:
    """Counts requests and keeps what was found. `judge` replaces the light model's verdict where one is given."""

    def __init__(self, topic: Topic, budget: int, *, per_site: int = 100, judge: Judge | None = None) -> None:
        self.topic = topic
        self.budget = budget
        self.per_site = per_site
        self.relevance = Relevance(topic)
        self._judge: Judge = judge or self.relevance
        self.spent = 0
        self.purposes: dict[str, int] = {}
        self.found: list[FoundDocument] = []
        self.marks: list[tuple[int, int]] = []  # (requests so far, relevant so far) at each new relevant document
        self.linked: set[str] = set()
        self.taken: dict[str, int] = {}  # documents by host
        self.hits: dict[str, int] = {}  # times a relevant document was met, by key: for the recall estimate
        self._digests: dict[int, str] = {}
        self._runs: dict[str, set[str]] = {}
        self.relevant = 0

    @property
    def left(self) -> int:
        return self.budget - self.spent

    def count(self, ask: SiteRequest) -> None:
        self.spent += 1
        self.purposes[ask.purpose] = self.purposes.get(ask.purpose, 0) + 1

    def full(self, host: str) -> bool:
        return self.taken.get(host, 0) >= self.per_site

    def read(self, url: str, estimate: float, source: str, query: str = "") -> RequestSequence[JudgedDocument | None]:
        """Fetch and judge a page. None = it was not brought."""
        answer = yield SiteRequest(url, purpose="page", score=estimate)
        if answer is None or not answer.good:
            return None
        document = self._judged(answer)
        self.taken[host_of(url)] = self.taken.get(host_of(url), 0) + 1
        self.linked.update(anchor.key for anchor in document.sheet.anchors)
        if document.verdict >= RELEVANT and not document.copy:
            self.relevant += 1
            self.marks.append((self.spent, self.relevant))
        self.found.append(
            FoundDocument(
                document.url, document.example.title, document.verdict, estimate, source, query, document.copy
            )
        )
        self.relevance.observe(document.example)
        return document

    def _judged(self, answer: SiteResponse) -> JudgedDocument:
        sheet = read_sheet(answer.body, answer.url)
        example = Example(sheet.title, self._own_text(sheet), answer.url, _types(answer.body))
        digest = xxh3_64_intdigest(f"{sheet.title}\0{sheet.longest}".encode("utf-8", "replace"))
        first = self._digests.setdefault(digest, canonical(answer.url))
        return JudgedDocument(answer.url, self._judge.judge(example), example, sheet, first != canonical(answer.url))

    def note_furniture(self, sheet: PageOutline) -> None:
        """Runs of text that a page of the site has are no other page's own words."""
        runs = self._runs.setdefault(host_of(sheet.url), set())
        if len(runs) < _RUNS_KEPT:
            runs.update(sheet.runs)

    def _own_text(self, sheet: PageOutline) -> str:
        """What a page says beyond its template: runs of text that no page of the site has shown before."""
        known = self._runs.get(host_of(sheet.url), set())
        own = [run for run in sheet.runs if run not in known]
        self.note_furniture(sheet)
        return " ".join(own)

    def met(self, key: str) -> None:
        """A query or link has shown this address once more."""
        self.hits[key] = self.hits.get(key, 0) + 1

    def recall_estimate(self) -> float:
        """Chao's lower bound: relevant documents met once against those met twice tell how many were never met."""
        keys = [canonical(found.url) for found in self.found if found.verdict >= RELEVANT and not found.copy]
        once = sum(self.hits.get(key, 1) <= 1 for key in keys)
        twice = sum(self.hits.get(key, 1) == 2 for key in keys)
        unseen = once * once / (2 * twice) if twice else once * max(0, once - 1) / 2
        return len(keys) / (len(keys) + unseen) if keys else 0.0

    def report_found(self) -> list[FoundDocument]:
        return [
            msgspec.structs.replace(found, isolated=found.source != "link" and canonical(found.url) not in self.linked)
            for found in self.found
        ]


def article_links(sheet: PageOutline, furniture: frozenset[str] = frozenset()) -> list[Anchor]:
    """Links to the same site that are no furniture and have not been named `nofollow`."""
    site = site_of(host_of(sheet.url))
    found: dict[str, Anchor] = {}
    if sheet.nofollow:
        return []
    for anchor in sheet.anchors:
        if anchor.key in furniture or anchor.key in found or "nofollow" in anchor.rel.lower():
            continue
        if site_of(host_of(anchor.url)) == site and anchor.key != canonical(sheet.url):
            found[anchor.key] = anchor
    return list(found.values())


def _types(body: bytes) -> tuple[str, ...]:
    """schema.org types named in the page, without reading its data: enough for a verdict on a wanted type."""
    found: dict[str, None] = {}
    for mark in (b'"@type"', b"itemtype=", b"typeof="):
        at = body.find(mark)
        while at >= 0 and len(found) < 20:
            tail = body[at + len(mark) : at + len(mark) + 120].decode("utf-8", "replace").lstrip(" \t\r\n:[")
            if tail[:1] in "\"'":
                name = tail[1:].partition(tail[0])[0]
                if name and " " not in name.strip():
                    found[name.strip()] = None
            at = body.find(mark, at + len(mark))
    return tuple(found)
