"""What a store holds of a page must not change by making it cheaper: pinned digests of statements and their words.

A warehouse knows a page's graph by its digest and a blank node by its name. If either changes without need, every page
counts as changed when it is read again. So these digests may change only together with what a page states.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from types import FrameType

import msgspec
import pytest
from xxhash import xxh3_64_hexdigest

from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import process_page
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.visit import Visit
from quadloom.settings import AuditSettings, Settings
from quadloom_lab.realweb.web import RealPage, RealWeb

DIGESTS = {
    "html": "eef35c659979a586",
    "xml": "f2e50fde7e364128",
    "rss": "936b90afbf2ba4ca",
    "atom": "c308cfabc045bbab",
    "rdfxml": "1bba780a60133793",
    "turtle": "aa3546ec33537218",
    "jsonld": "250e6f96084168a3",
}
# Calls of Python and native functions between fetch and the stores, without checks, for each statement. Pinned on
# Python 3.11. After a change that makes documents cheaper, lower them; to raise one needs a reason in the commit.
CALLS = {
    "native": {"xml": 7.6, "rss": 11.1, "atom": 11.7, "rdfxml": 3.2, "turtle": 3.9, "jsonld": 34.6},
    "python": {"xml": 24.9, "rss": 19.3, "atom": 19.7, "rdfxml": 9.2, "turtle": 12.0, "jsonld": 42.3},
}
ALLOWED = 1.15
_DEFAULTS = Settings()
_PAGES = {"html": 12, "xml": 3, "rss": 3, "atom": 3, "rdfxml": 3, "turtle": 3, "jsonld": 3}


@pytest.fixture(scope="module")
def pages() -> dict[str, list[RealPage]]:
    found: dict[str, list[RealPage]] = {kind: [] for kind in _PAGES}
    for page in RealWeb(400, hosts=2, seed=7).pages():
        if page.kind in found and len(found[page.kind]) < _PAGES[page.kind]:
            found[page.kind].append(page)
    return found


@pytest.mark.parametrize("kind", _PAGES)
def test_the_same_statements_and_words(pages: dict[str, list[RealPage]], kind: str) -> None:
    assert len(pages[kind]) == _PAGES[kind]
    assert xxh3_64_hexdigest(b"".join(kept(work(page)) for page in pages[kind])) == DIGESTS[kind]


@pytest.mark.parametrize("kind", [kind for kind in _PAGES if kind != "html"])
def test_a_statement_takes_no_more_calls(pages: dict[str, list[RealPage]], kind: str) -> None:
    pinned = CALLS["python" if os.environ.get("QUADLOOM_WITHOUT_NATIVE") else "native"][kind]
    unchecked = Settings(audit=AuditSettings(checks=False))
    statements = sum(work(page, unchecked).quads.count for page in pages[kind])
    calls = calls_of(lambda: [work(page, unchecked) for page in pages[kind]])
    wide = 1.0 if sys.version_info[:2] == (3, 11) else 1.1  # other versions inline other things
    assert pinned / ALLOWED / wide < calls / statements < pinned * ALLOWED * wide


def kept(result: PageResult) -> bytes:
    text = result.text
    assert text is not None
    words = (text.literals, text.types, text.vocabularies)
    return result.quads.nquads + result.lines + msgspec.json.encode(words)


def work(page: RealPage, settings: Settings = _DEFAULTS) -> PageResult:
    fetched = Page(page.url, page.url, 200, (("content-type", page.content_type),), page.body, 1.7e9, 0.1)
    visit = Visit(page.url, page.url, page.url.split("/")[2], 1)
    return process_page(fetched, visit, settings, chosen(settings.crawl.strategies))


def calls_of(done: Callable[[], object]) -> int:
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        done()
    finally:
        sys.setprofile(None)
    return calls
