"""The rival of `whole.py` and of `quadloom bench real`: Scrapy, extruct and pyoxigraph, tuned, from given seeds.

    python rival_scrapy.py SEEDS RESPONSES FOLDER       (SEEDS: a JSON file with a list of URLs)

What was tuned, so that the comparison is fair: links by one XPath instead of `LinkExtractor` (8 ms per page), extruct's
RDFa, 94 % of its cost, only on pages with `typeof=` or `vocab=`, many requests at a time, no logging, uvloop, one write
to the store per page. It does less than Quadloom: no archive, no text index, no durable queue, no detection, values
become plain literals, and nothing is compared with an earlier version.

Prints one JSON object: responses, quads, CPU seconds from the first request to the end, without imports.
"""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import extruct
import scrapy
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Store
from scrapy.crawler import CrawlerProcess
from scrapy.resolver import CachingThreadedResolver
from twisted.internet import defer

CHEAP = ["json-ld", "microdata", "opengraph", "microformat"]
FORMATS = {
    "text/turtle": RdfFormat.TURTLE, "application/rdf+xml": RdfFormat.RDF_XML,
    "application/n-triples": RdfFormat.N_TRIPLES, "application/n-quads": RdfFormat.N_QUADS,
    "application/trig": RdfFormat.TRIG,
}  # fmt: skip
SCHEMA = "http://schema.org/"
A = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


class LoopbackResolver(CachingThreadedResolver):
    def getHostByName(self, name, timeout=None):  # type: ignore[no-untyped-def]
        return defer.succeed(name if name.startswith("127.") else "127.0.0.1")


class Rival(scrapy.Spider):
    """Follows every link and stores what extruct and pyoxigraph read."""

    name = "rival"

    def __init__(self, seeds: list[str], store: Store, responses: int) -> None:
        super().__init__()
        self.seeds, self.store, self.wanted, self.seen = seeds, store, responses, 0

    async def start(self):  # type: ignore[no-untyped-def]
        for href in self.seeds:
            yield scrapy.Request(href)

    def parse(self, response):  # type: ignore[no-untyped-def]
        self.seen += 1
        if self.seen > self.wanted:
            raise scrapy.exceptions.CloseSpider("enough")
        graph = NamedNode(response.url)
        kind = response.headers.get("Content-Type", b"").decode("latin-1").partition(";")[0]
        if kind in FORMATS:
            self.store.extend(pyoxigraph_quads(response.body, FORMATS[kind], response.url, graph))
        elif isinstance(response, scrapy.http.HtmlResponse):
            self.store.extend(list(html_quads(response, graph)))
            for href in response.xpath("//a/@href").getall():
                yield response.follow(href)
        elif isinstance(response, scrapy.http.TextResponse):
            for href in response.xpath("//*[local-name()='loc' or local-name()='link']//text()").getall():
                if href.startswith("http"):
                    yield response.follow(href)


def pyoxigraph_quads(body: bytes, format: RdfFormat, base: str, graph: NamedNode) -> list[Quad]:
    from pyoxigraph import parse

    try:
        return [Quad(q.subject, q.predicate, q.object, graph) for q in parse(body, format=format, base_iri=base)]
    except (SyntaxError, ValueError):
        return []


def html_quads(response: scrapy.http.HtmlResponse, graph: NamedNode) -> Iterator[Quad]:
    body = response.body
    syntaxes = [*CHEAP, "rdfa"] if b"typeof=" in body or b"vocab=" in body else CHEAP
    found = extruct.extract(response.text, base_url=response.url, syntaxes=syntaxes, errors="ignore")
    for name, items in found.items():
        for item in items:
            if name == "opengraph":
                for key, value in item["properties"]:
                    yield Quad(graph, NamedNode("https://ogp.me/ns#" + key.partition(":")[2]), Literal(value), graph)
            else:
                yield from tree_quads(item, graph)[1]


def tree_quads(item: dict[str, object], graph: NamedNode) -> tuple[NamedNode | BlankNode, list[Quad]]:
    """Statements of one of extruct's trees, with its keys as they are."""
    name = item.get("@id")
    subject = NamedNode(name) if isinstance(name, str) and ":" in name and " " not in name else BlankNode()
    quads: list[Quad] = []
    for key, values in {**item, **(item.get("properties") or {})}.items():  # type: ignore[dict-item]
        if key in ("@context", "@id", "properties"):
            continue
        predicate = A if key in ("@type", "type") else NamedNode(key if ":" in key else SCHEMA + key.strip("@"))
        for value in values if isinstance(values, list) else [values]:
            if isinstance(value, dict) and "@value" in value:
                quads.append(Quad(subject, predicate, Literal(str(value["@value"])), graph))
            elif isinstance(value, dict):
                there, inner = tree_quads(value, graph)
                quads.append(Quad(subject, predicate, there, graph))
                quads += inner
            else:
                quads.append(Quad(subject, predicate, Literal(str(value)), graph))
    return subject, quads


def main() -> None:
    seeds, responses, folder = json.loads(Path(sys.argv[1]).read_text()), int(sys.argv[2]), Path(sys.argv[3])
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    store = Store(str(folder))
    process = CrawlerProcess(
        {
            "LOG_ENABLED": False,
            "CONCURRENT_REQUESTS": 128,
            "CONCURRENT_REQUESTS_PER_DOMAIN": 32,
            "ROBOTSTXT_OBEY": True,
            "TELNETCONSOLE_ENABLED": False,
            "DNS_RESOLVER": f"{__name__}.LoopbackResolver",
            "COOKIES_ENABLED": False,
            "RETRY_ENABLED": False,
            "DOWNLOAD_DELAY": 0,
            "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
            "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
        }
    )
    crawler = process.create_crawler(Rival)
    cpu, wall = time.process_time(), time.perf_counter()
    process.crawl(crawler, seeds=seeds, store=store, responses=responses)
    process.start()
    store.flush()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    seen = min(crawler.spider.seen, responses)
    print(json.dumps({"responses": seen, "quads": len(store), "cpu": cpu, "seconds": wall}))


if __name__ == "__main__":
    main()
