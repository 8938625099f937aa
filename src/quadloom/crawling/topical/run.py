"""The state that all strategies share: the relevance model, the budget, and every document fetched so far."""

from __future__ import annotations

import msgspec
from xxhash import xxh3_64_intdigest

from quadloom.crawling.topical.access import RequestSequence, SiteRequest, SiteResponse
from quadloom.crawling.topical.anchors import Anchor, PageOutline, is_page, read_outline
from quadloom.crawling.topical.relevance import Example, Judge, Relevance, Topic
from quadloom.model.url import canonical, host_of, site_of

_MAX_TEXTS = 5000  # remembered of one site
RELEVANT = 0.5  # a document counts as relevant from this probability on


class AssessedDocument(msgspec.Struct, frozen=True):
    """A fetched page and its relevance. `copy`: the same text was fetched before, under another URL."""

    url: str
    verdict: float
    example: Example
    outline: PageOutline
    copy: bool = False

    @property
    def worth(self) -> float:
        """The relevance; 0 for a copy."""
        return 0.0 if self.copy else self.verdict


class FoundDocument(msgspec.Struct, frozen=True):
    """A line of the report: a fetched document, how it was found, and its relevance before (estimate) and after."""

    url: str
    title: str
    verdict: float
    estimate: float
    source: str  # result | index | link
    query: str = ""
    copy: bool = False
    isolated: bool = False  # no fetched page links to it


class KnownPages(msgspec.Struct, frozen=True):
    """Pages that were found but not fetched. `relevant`: how many of them are on the topic, by their estimates."""

    pages: int = 0
    relevant: float = 0.0


class TopicalRun:
    """Counts requests and collects results. `judge`: assesses documents instead of the built-in model."""

    def __init__(self, topic: Topic, budget: int, *, per_site: int = 100, judge: Judge | None = None) -> None:
        self.topic = topic
        self.budget = budget
        self.per_site = per_site
        self.relevance = Relevance(topic)
        self._judge: Judge = judge or self.relevance
        self.spent = 0
        self.purposes: dict[str, int] = {}
        self.found: list[FoundDocument] = []
        self.linked: set[str] = set()
        self.fetched: dict[str, int] = {}  # documents by host
        self._digests: dict[int, str] = {}
        self._site_texts: dict[str, set[str]] = {}
        self.relevant = 0

    @property
    def left(self) -> int:
        """Requests left in the budget."""
        return self.budget - self.spent

    def count(self, request: SiteRequest) -> None:
        """Count a request against the budget."""
        self.spent += 1
        self.purposes[request.purpose] = self.purposes.get(request.purpose, 0) + 1

    def full(self, host: str) -> bool:
        """Whether the site has given as many documents as allowed."""
        return self.fetched.get(host, 0) >= self.per_site

    def read(self, url: str, estimate: float, source: str, query: str = "") -> RequestSequence[AssessedDocument | None]:
        """Fetch and assess a page; None if it could not be fetched, or its site has given enough (`per_site`)."""
        if self.full(host_of(url)):
            return None
        answer = yield SiteRequest(url, purpose="page", score=estimate)
        if answer is None or not answer.good:
            return None
        document = self._assessed(answer)
        self.fetched[host_of(url)] = self.fetched.get(host_of(url), 0) + 1
        self.linked.update(anchor.key for anchor in document.outline.anchors)
        if document.verdict >= RELEVANT and not document.copy:
            self.relevant += 1
        self.found.append(
            FoundDocument(
                document.url, document.example.title, document.verdict, estimate, source, query, document.copy
            )
        )
        self.relevance.observe(document.example)
        return document

    def _assessed(self, answer: SiteResponse) -> AssessedDocument:
        outline = read_outline(answer.body, answer.url)
        example = Example(outline.title, self._own_text(outline), answer.url, _types(answer.body))
        digest = xxh3_64_intdigest(f"{outline.title}\0{outline.longest}".encode("utf-8", "replace"))
        first = self._digests.setdefault(digest, canonical(answer.url))
        return AssessedDocument(
            answer.url, self._judge.judge(example), example, outline, first != canonical(answer.url)
        )

    def note_boilerplate(self, outline: PageOutline) -> None:
        """Remember the texts of a page: on other pages of the site they count as boilerplate."""
        texts = self._site_texts.setdefault(host_of(outline.url), set())
        if len(texts) < _MAX_TEXTS:
            texts.update(outline.texts)

    def _own_text(self, outline: PageOutline) -> str:
        """The text of a page without its template: what no page of the site has shown before."""
        known = self._site_texts.get(host_of(outline.url), set())
        own = [text for text in outline.texts if text not in known]
        self.note_boilerplate(outline)
        return " ".join(own)

    def report_found(self) -> list[FoundDocument]:
        """All fetched documents, with `isolated` set."""
        return [
            msgspec.structs.replace(found, isolated=found.source != "link" and canonical(found.url) not in self.linked)
            for found in self.found
        ]


def article_links(outline: PageOutline, boilerplate: frozenset[str] = frozenset()) -> list[Anchor]:
    """Links to the same site, without boilerplate and without `nofollow`."""
    site = site_of(host_of(outline.url))
    found: dict[str, Anchor] = {}
    if outline.nofollow:
        return []
    for anchor in outline.anchors:
        if anchor.key in boilerplate or anchor.key in found or "nofollow" in anchor.rel.lower():
            continue
        if site_of(host_of(anchor.url)) == site and anchor.key != canonical(outline.url) and is_page(anchor.url):
            found[anchor.key] = anchor
    return list(found.values())


def _types(body: bytes) -> tuple[str, ...]:
    """schema.org types named in the page, without parsing its data: enough to check for a wanted type."""
    found: dict[str, None] = {}
    for marker in (b'"@type"', b"itemtype=", b"typeof="):
        at = body.find(marker)
        while at >= 0 and len(found) < 20:
            tail = body[at + len(marker) : at + len(marker) + 120].decode("utf-8", "replace").lstrip(" \t\r\n:[")
            if tail[:1] in "\"'":
                name = tail[1:].partition(tail[0])[0]
                if name and " " not in name.strip():
                    found[name.strip()] = None
            at = body.find(marker, at + len(marker))
    return tuple(found)
