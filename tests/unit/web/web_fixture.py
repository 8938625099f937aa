"""A small warehouse, written by the real stores, with malicious pages."""

from __future__ import annotations

from pathlib import Path

import msgspec

from quadloom.crawling.ingest.settle import settle_page
from quadloom.crawling.ingest.traps.filter import TRAPS, TrapCount
from quadloom.crawling.subscriptions.websub import TOPICS, HubSubscription
from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import process_page
from quadloom.model.link import LinkKind
from quadloom.model.page import Page
from quadloom.model.url import Url
from quadloom.model.visit import Visit
from quadloom.planning.ranking.link_matrix import LinkMatrix
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode
from quadloom.stores.protocols.catalog import IndexedPage
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse

BOOK = "http://books.example/lighthouse"
PERSON = "http://people.example/ada"
EVIL = "http://evil.example/page?x=%3Cscript%3E"
# Ways to run a script that others have tried, in a title, a literal, a language, an IRI and an anchor.
ATTACKS = (
    "<script>window.hit=1</script>",
    '"><img src=x onerror="window.hit=1">',
    "'-alert(1)-'",
    "javascript:window.hit=1",
    "</title></textarea></script><svg onload=window.hit=1>",
    "{{7*7}}{% raw %}",
)
_PAGES = {
    BOOK: f"""<!doctype html><html lang="en"><head><title>The Distant Lighthouse</title></head><body>
      <script type="application/ld+json">{{"@context": "http://schema.org/", "@id": "{BOOK}#it", "@type": "Book",
      "name": "The Distant Lighthouse", "isbn": "978-3", "author": {{"@id": "{PERSON}#it"}},
      "image": "http://books.example/cover.png"}}</script>
      <p>A lighthouse far away, and who wrote of it.</p><a href="{PERSON}">author</a></body></html>""",
    PERSON: f"""<!doctype html><html lang="ar"><head><title>عدا</title></head><body>
      <script type="application/ld+json">{{"@context": "http://schema.org/", "@id": "{PERSON}#it", "@type": "Person",
      "name": [{{"@value": "Ada", "@language": "en"}}, {{"@value": "عدا", "@language": "ar"}}]}}</script>
      <script type="application/ld+json">{{"@context": "http://schema.org/", "@id": "{BOOK}#it", "isbn": "979-9"}}
      </script><p>Ada keeps a lighthouse.</p></body></html>""",
    EVIL: "<!doctype html><html><head><title>&lt;script&gt;window.hit=1&lt;/script&gt; lighthouse</title></head><body>"
    '<script type="application/ld+json">'
    + msgspec.json.encode(
        {
            "@context": "http://schema.org/",
            "@id": "http://evil.example/thing",
            "@type": "Thing",
            "name": list(ATTACKS),
            "url": "javascript:window.hit=1",
            "image": "javascript:window.hit=1",
            "sameAs": {"@id": "javascript:window.hit=1"},
        }
    )
    .decode()
    .replace("</", "<\\/")
    + '</script><a href="javascript:window.hit=1">x</a><p>lighthouse &lt;img src=x onerror=window.hit=1&gt;</p>'
    "</body></html>",
}
# Who links to whom, as the crawl would have noted it.
_LINKS = {BOOK: (PERSON, EVIL, "http://unread.example/"), PERSON: (BOOK, PERSON), EVIL: (BOOK,)}


def store_page(warehouse: Warehouse, href: str, markup: str, at: float) -> None:
    """One visit of a page, through the real phases into the real stores."""
    settings, url = warehouse.settings, Url.parse(href)
    page = Page(url.href, url.href, 200, (("content-type", "text/html; charset=utf-8"),), markup.encode(), at, 0.1)
    visit = Visit(url.href, url.key, url.host, url.fingerprint)
    result = process_page(page, visit, settings, chosen(["all"]))
    (ref,) = warehouse.stores.archive.put([encode(page)])
    warehouse.stores.archive.sync()
    settlement = settle_page(visit, page, result, None, warehouse.stores.catalog.page(url.fingerprint), ref)
    with warehouse.stores.catalog.transaction():
        warehouse.stores.frontier.settle([settlement], at)
        warehouse.stores.catalog.record([settlement], at)
    warehouse.stores.quads.replace(result.quads)
    assert result.text is not None
    warehouse.stores.text.put([result.text])
    warehouse.stores.catalog.mark_indexed([IndexedPage(url.fingerprint, result.quads.digest, result.text_digest)])


def fill(path: Path) -> None:
    """Three pages; the first is visited twice and says something else the second time."""
    settings = Settings()
    with Warehouse.open(path, settings=settings) as warehouse:
        warehouse.requests.add_seeds([BOOK, PERSON, EVIL])
        versions = [
            (BOOK, _PAGES[BOOK].replace("978-3", "978-0"), 1.7e9),
            *((u, t, 1.7e9 + 60) for u, t in _PAGES.items()),
        ]
        links = LinkMatrix(path / "links")
        for href, markup, at in versions:
            store_page(warehouse, href, markup, at)
            targets: list[tuple[int, LinkKind]] = [
                (Url.parse(target).fingerprint, "plain") for target in _LINKS.get(href, ())
            ]
            links.append(Url.parse(href).fingerprint, targets)
        warehouse.stores.text.commit()
        trap = TrapCount("evil.example", "endless calendar", "http://evil.example/<script>window.hit=1</script>", 1234)
        TRAPS.put(warehouse.stores.catalog, [trap])
        links.close()
        topic = {"narrow": "lighthouse keepers", "broad": "coasts", "requests": 1500, "documents": 40, "harvest": 0.75}
        warehouse.stores.catalog.values.put(
            "topic:lighthouse-keepers", msgspec.json.encode(topic | {"finished_at": 1_700_000_000})
        )
        warehouse.stores.catalog.values.put("topic:older", b"[1]")
        hub = HubSubscription(id="hub1", page=1, href=BOOK, topic=BOOK, hub="http://hub.example/", secret="hush")
        TOPICS.put(warehouse.stores.catalog, hub.id, hub)
        STATISTICS.put_encoded(warehouse.stores.catalog, Statistics.recounted(warehouse.stores.quads).encode())
