"""READ THIS FIRST: the five phases, composed.

::

    visit ──FETCH──► Page ──DETECT──► Document ──TRANSFORM──► Transformed ──INDEX──► Quads, TextDocument
                                                                  │
                                                                  └──EXTRACT──► Discoveries ──► frontier

* fetch         `quadloom.fetching` returns a `Page`; it runs in its own process and never looks into a body.
* process_page  (below) detect, transform, and the parts of index and extract that need no store. It is a plain function
                of a page, so it runs in disposable worker processes, for `crawl`, `import`, `replay` and `rebuild`.
* settle        `quadloom.crawling.ingest.intake` writes archive, catalog, quads and text to disk, in that order.

`process_page` is the one error boundary: whatever a page does to our code becomes a `Finding`, never an exception.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec
from xxhash import xxh3_128_digest

from quadloom.documents.detect import detect, detect_body
from quadloom.documents.extract import IsNews, LinkTarget, Strategy, discoveries, edges, targets
from quadloom.documents.extract_queries import link_graph
from quadloom.documents.headers import push_offer, with_header_links
from quadloom.documents.index import IndexedText, page_graph, text_document
from quadloom.documents.syntaxes.external import ServicesNeeded
from quadloom.documents.syntaxes.installed import SYNTAXES
from quadloom.documents.syntaxes.registry import Loader, Registry
from quadloom.documents.transform import transform
from quadloom.model.document import PageFacts, Transformed
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult, PhaseSeconds
from quadloom.model.quads import Quads, line_fingerprints
from quadloom.model.service import ServiceAnswer
from quadloom.model.text import TextDocument
from quadloom.model.url import host_of
from quadloom.model.visit import Visit
from quadloom.settings import Settings
from quadloom.settings.sites import rules_for

# Every page has what these state; a page with nothing else carries no structured data.
_PAGE_WORDS = frozenset(("html", "meta", "text"))


def process_page(
    page: Page,
    visit: Visit,
    settings: Settings,
    strategies: tuple[Strategy, ...],
    loader: Loader | None = None,
    syntaxes: Registry = SYNTAXES,
    is_news: IsNews = lambda _fingerprint, _depth: True,
    answers: tuple[ServiceAnswer, ...] | None = None,
) -> PageResult:
    """Everything between fetch and the stores, for one page. `is_news`: see `phases.extract`.

    Raises nothing but `ServicesNeeded`, and that only without `answers`: see `phases.transform`.
    """
    try:
        # The user's own [[site]] may be read whatever its robots.txt says, and then whatever its pages say too.
        rules = rules_for(host_of(page.final_url), settings)
        if rules is not settings.politeness:
            settings = msgspec.structs.replace(settings, politeness=rules)
        started = time.thread_time()
        detected = detect_body(page.body, url=page.final_url, content_type=page.content_type or None)
        seconds = PhaseSeconds(detect=time.thread_time() - started)
        transformed = transform(
            page.body,
            url=page.final_url,
            headers=page.headers,
            settings=settings,
            loader=loader,
            syntaxes=syntaxes,
            answers=answers,
            detected=detected,
        )
        if any(name == "link" for name, _ in page.headers):
            transformed = with_header_links(transformed, page)
        leading_to = targets(transformed.links)
        result = _page_result(page, transformed, leading_to, settings)
        if transformed.nofollow:
            return msgspec.structs.replace(result, seconds=seconds)
        # Last of all: `is_news` remembers what it was asked, so nothing after this call may fail.
        started = time.thread_time()
        found = discoveries(transformed, leading_to, visit, strategies, is_news)
        seconds = PhaseSeconds(seconds.detect, time.thread_time() - started)
        return msgspec.structs.replace(result, discoveries=found, seconds=seconds)
    except ServicesNeeded:
        raise
    except Exception as error:  # noqa: BLE001  the error boundary: a page must not end the crawl
        return _broken(page, error)


def detected_page(page: Page) -> PageResult:
    """DETECT alone: what kind of document a page is. Never raises."""
    started = time.thread_time()
    try:
        document = detect(page.body, url=page.final_url, content_type=page.content_type or None)
    except Exception as error:  # noqa: BLE001  the error boundary, as in `process_page`
        return _broken(page, error)
    facts = PageFacts(document.kind, document.media_type, document.charset)
    return PageResult(
        facts,
        Quads.of(page.final_url, b""),
        None,
        b"",
        b"",
        findings=document.findings,
        seconds=PhaseSeconds(detect=time.thread_time() - started),
    )


def _page_result(
    page: Page, transformed: Transformed, leading_to: Sequence[LinkTarget], settings: Settings
) -> PageResult:
    facts = transformed.facts
    has_data = any(name not in _PAGE_WORDS for name, _ in facts.syntaxes)
    # Left out here and not by the writer, so that the page counts as indexed: nothing is what the indexes owe it.
    left_out = facts.noindex or (settings.index.only_data and not has_data)
    index, limits = settings.index, settings.limits
    quads = Quads.of(page.final_url, b"")
    indexed: IndexedText | None = None
    if not left_out:
        graph = page_graph(transformed, page.final_url, index.links, index.schema_org)
        quads = graph.quads
        if index.text:
            indexed = text_document(transformed, page, graph, limits.literal_chars, index.schema_org)
    text = indexed.document if indexed is not None else None
    findings = page.findings + transformed.findings
    if left_out:
        findings += (_absence(facts.noindex),)
    if indexed is not None and indexed.left_out:
        findings += (_cut(indexed.left_out, limits.literal_chars),)
    return PageResult(
        facts,
        quads,
        text,
        text_digest=_digest_of(text) if text else b"",
        body_digest=xxh3_128_digest(page.body),
        edges=edges(transformed.links, leading_to, vocabulary=settings.freshness.vocabulary_links),
        links=len(transformed.links),
        has_data=has_data,
        findings=findings,
        lines=line_fingerprints(quads.nquads),
        link_quads=link_graph(transformed.links, page.final_url)
        if any(name.endswith(".rq") for name in settings.crawl.strategies) and not facts.nofollow
        else b"",
        push=push_offer(page, transformed) if settings.subscriptions.websub else None,
        audit=transformed.audit,
    )


def _digest_of(text: TextDocument) -> bytes:
    """Field by field, because Python keeps the UTF-8 of a text that was encoded before."""
    fields = (text.title, text.body, text.literals)
    return xxh3_128_digest(b"\0".join([field.encode("utf-8", "replace") for field in fields]))


def _absence(noindex: bool) -> Finding:
    """Why a page that was read is in no index: otherwise nobody could tell it from one that says nothing."""
    if noindex:
        advice = 'for a site of your own, [[site]] with robots = "ignore" reads it all the same'
        return Finding("noindex", "the page asks not to be indexed", "info", "index", advice=advice)
    return Finding("no-data", "no structured data, and index.only_data is on", "info", "index")


def _cut(left_out: int, most: int) -> Finding:
    message = f"{left_out} characters of literals beyond {most} cannot be found by their words"
    advice = "raise limits.literal_chars, or publish the data in several documents"
    return Finding("too-many-literals", message, "warning", "index", advice=advice)


def _broken(page: Page, error: Exception) -> PageResult:
    finding = Finding(
        "internal-error",
        f"{type(error).__name__}: {error}"[:500],
        "error",
        "transform",
        advice="a defect of Quadloom, not of the page; please report it with the URL",
    )
    return PageResult(
        PageFacts("binary"),
        Quads.of(page.final_url, b""),
        None,
        text_digest=b"",
        body_digest=xxh3_128_digest(page.body),
        findings=(*page.findings, finding),
    )
