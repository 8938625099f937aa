"""CPU time of feeds per statement, compared with pyoxigraph's parser and XSLT.

    python -m quadloom_lab.benchmarks.feeds [entries]

All run interleaved on the same statements, bytes in and N-Quads out; the best of several rounds is printed, which is
the figure least disturbed by other programs on the machine.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from email.utils import formatdate
from functools import partial

import pyoxigraph as ox

from quadloom.documents.detect import detect
from quadloom.documents.syntaxes.feeds import xml_feeds as feeds
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.xml.xslt import bundled
from quadloom.settings import Settings

URL = "https://site.example/feed"
SETTINGS = Settings()


def rss(count: int) -> bytes:
    items = "".join(
        f"<item><title>Title of number {n}</title><link>https://site.example/post/{n}</link>"
        f'<guid isPermaLink="false">post-{n}</guid><pubDate>{formatdate(1.7e9 + n * 3600)}</pubDate>'
        "<dc:creator>Jane Doe</dc:creator><category>news</category><category>world</category>"
        f"<description>Summary of entry number {n} with a few words</description>"
        f'<enclosure url="https://site.example/a/{n}.mp3" type="audio/mpeg" length="1234"/></item>'
        for n in range(count)
    )
    return (
        '<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><title>News</title>'
        f"<link>https://site.example/</link><language>en</language>{items}</channel></rss>"
    ).encode()


def atom(count: int) -> bytes:
    entries = "".join(
        f'<entry><title>Title of number {n}</title><link href="https://site.example/post/{n}"/>'
        f"<id>tag:site.example,2024:{n}</id><published>2024-01-01T00:{n % 60:02}:00+01:00</published>"
        f"<updated>2024-01-02T00:{n % 60:02}:00Z</updated><author><name>Jane Doe</name></author>"
        f'<category term="news"/><summary>Summary of entry number {n} with a few words</summary></entry>'
        for n in range(count)
    )
    head = '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en"><title>News</title>'
    return f"{head}{entries}</feed>".encode()


def context(body: bytes) -> Context:
    return Context(body, detect(body, url=URL, content_type="application/xml"), url=URL, settings=SETTINGS)


def native(body: bytes) -> bytes:
    made = context(body)
    feeds.read(made)
    return made.sink.nquads(URL)


def styled(name: str, body: bytes) -> bytes:
    made = context(body)
    bundled(name).state(made, made.root, syntax=name)
    return made.sink.nquads(URL)


def parsed(body: bytes, kind: ox.RdfFormat) -> bytes | None:
    return ox.serialize(ox.parse(body, kind), format=ox.RdfFormat.N_QUADS)


def compare(works: dict[str, Callable[[], object]], rounds: int = 12) -> dict[str, float]:
    """Best CPU seconds of each, run in turns."""
    best = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            started = time.process_time()
            work()
            best[name] = min(best[name], time.process_time() - started)
    return best


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for name, body in (("rss", rss(count)), ("atom", atom(count))):
        nquads = native(body)
        triples = (quad.triple for quad in ox.parse(nquads, ox.RdfFormat.N_QUADS))
        rdfxml = ox.serialize(triples, format=ox.RdfFormat.RDF_XML) or b""
        best = compare(
            {
                "native": partial(native, body),
                "XSLT": partial(styled, name, body),
                "pyoxigraph, N-Quads": partial(parsed, nquads, ox.RdfFormat.N_QUADS),
                "pyoxigraph, RDF/XML": partial(parsed, rdfxml, ox.RdfFormat.RDF_XML),
            }
        )
        statements = nquads.count(b"\n")
        print(f"{name}: {count} entries, {statements} statements, CPU-µs per statement")
        for work, seconds in best.items():
            print(f"  {work:22s}{seconds / statements * 1e6:7.2f}")


if __name__ == "__main__":
    main()
