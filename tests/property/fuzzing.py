# ruff: noqa: E501 - samples of documents
"""Seeded fuzzers, run as a process of their own: `python fuzzing.py TARGET SEED SECONDS FILE`, or `… TARGET replay FILE`.

Each input is written to FILE before it is tried, so that an input that ends the process is known. Inputs are parts of
real ones, cut, repeated, swapped and spliced. An error that a target documents is fine; any other exception ends the
run, and so does a defect that the pipeline has caught at its own boundary.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gzip
import io
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyoxigraph as ox

from quadloom.asking.sparql.checks import check
from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import process_page
from quadloom.errors import QuadloomError, SettingsError
from quadloom.fetching.guard import Guard
from quadloom.maintenance.importing.imported_pages import read_files
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import LimitSettings, Settings, length_of
from quadloom.settings.loading import load
from quadloom.stores.archive.warc_record import encode, file_header
from quadloom.stores.frontier.policy import FrontierPolicy

URL = "http://fuzz.example/page"
DEFECTS = {"internal-error", "extractor-failed", "checks-failed"}
CORPUS = Path(__file__).resolve().parents[1] / "corpus"

DOCUMENTS = [
    b'<script type="application/ld+json">{"@context":"https://schema.org","@type":"Event","name":["a",{"@value":"b",'
    b'"@language":"de"}],"@graph":[{"@id":"_:x","location":{"@list":[1,2.5,true,null]}}],"@reverse":{"about":"x"}}</script>',
    b'<div vocab="http://schema.org/" prefix="p: http://p/" typeof="Event" resource="#e" inlist=""><a property="url" '
    b'rel="p:next" href="?a=b#c">x</a><p property="name" lang="en" content="y" datatype="xsd:date">z</p></div>',
    b'<div itemscope itemtype="http://schema.org/Event" itemid="urn:x" itemref="a b"><p itemprop="name"><time itemprop='
    b'"startDate" datetime="2026-11-17T12:00Z"></div><p id=a itemprop="b">',
    b'<div class="h-event vevent"><p class="p-name summary">n<time class="dt-start dtstart value">2026-11-17</time>'
    b'<a class="u-url url" href="/x">',
    b'<?xml version="1.0" encoding="utf-8"?><rss version="2.0"><channel><title>t</title><item><link>http://a/b</link>'
    b'<pubDate>Tue, 17 Nov 2026 12:00:00 GMT</pubDate><guid isPermaLink="false">g</guid></item></channel></rss>',
    b'<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:a</id><link rel="alternate" href="x"/><updated>2026-11-17T'
    b'12:00:00Z</updated><content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">c</div></content></entry></feed>',
    b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc>http://a/b</loc><lastmod>2026-11</lastmod>'
    b"</url></urlset>",
    b'<!DOCTYPE r [<!ENTITY e "x">]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:a="u:"><rdf:'
    b'Description rdf:about="x"><a:b rdf:parseType="Collection"><a:c/></a:b></rdf:Description></rdf:RDF>',
    b'@prefix a: <http://a/> . @base <http://b/> . a:x a:y ("1"^^a:z "t"@en [ a:p 1.5e3 ]) ; a <#> . <g> { a:x a:y 1 }',
    b'{"version":"https://jsonfeed.org/version/1.1","title":"t","items":[{"id":"1","url":"http://a","date_published":'
    b'"2026-11-17T12:00:00Z"}]}',
    b'<html lang="de"><head><base href="//b/"><meta charset="iso-8859-1"><meta name="robots" content="noindex,nofollow">'
    b'<meta property="og:title" content="&#x41;&amp;"><link rel="canonical" href="x"><title>&nbsp;</title></head><body>'
    b'<a rel="nofollow next" href="javascript:x">a</a><img src="data:,x" alt="i"><form action="/s"><input name=q></form>',
]
TYPES = ["text/html", "application/xml", "application/ld+json", "text/turtle", "application/rss+xml", "text/plain", ""]
QUERIES = [
    b'PREFIX s: <http://schema.org/> SELECT ?a (COUNT(*) AS ?n) { ?a s:name "x"@en ; a s:Event . OPTIONAL { ?a ?p ?o } '
    b"FILTER(?o<5 && ?n>3) } GROUP BY ?a ORDER BY DESC(?n) LIMIT 5",
    b"CONSTRUCT { ?s ?p ?o } WHERE { GRAPH ?g { ?s ?p ?o } FILTER NOT EXISTS { ?s <a:b>|<c:d>* ?x } }",
    b"SELECT * { SERVICE <http://127.0.0.1:9/> { ?s ?p ?o } }",
    b'SELECT * { ?s ?p ?o } # SERVICE\nASK { \'LOAD\' ?p """SERVICE""" }',
    b"LOAD <http://127.0.0.1/> ; INSERT DATA { <a:a> <a:b> <a:c> }",
    rb'SELECT * { \u0053ERVICE <http://127.0.0.1:9/> { ?s ?p ?o } VALUES ?x { "a\\" } }',
    b"DESCRIBE <a:a> FROM <file:///etc/passwd>",
    b'SELECT ?p { ?p <urn:quadloom:matches> ("words" 10) FILTER(?a<b:c)SERVICE:x#>}',
]
SETTINGS = [
    b'[crawl]\ncontact = "a@b.c"\nscope = "host"\nmax_depth = 3\nstrategies = ["all", "x.rq"]\n[politeness]\ndelay = 1.5\n',
    b'[freshness]\nmin_interval = "1h"\npolicy = "xyleme"\nalpha = 0.9\n[guard]\nallow = ["127.0.0.0/8"]\nports = [80]\n',
    b'[[site]]\nmatch = "*.example"\ndelay = 2\nrobots = "ignore"\n[[service]]\nurl = "http://a/"\nkinds = ["pdf"]\n',
    b'[stores]\nfrontier = "postgresql://u@h/d"\ndirectories = ["/a"]\narchive_file_bytes = 1_000\n[web]\nport = 7272\n',
]


def mutated(chance: random.Random, samples: list[bytes]) -> bytes:
    data = bytearray(chance.choice(samples))
    for _ in range(chance.choice((1, 1, 2, 4, 8, 16))):
        at, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
        end = min(end, at + chance.choice((1, 2, 8, 64, 1000)))
        way = chance.randrange(7)
        if way == 0:
            del data[at:end]
        elif way == 1:
            data[at:at] = data[at:end] * chance.choice((1, 2, 50))
        elif way == 2:
            data[at:end] = bytes(chance.randrange(256) for _ in range(end - at))
        elif way == 3:
            other = chance.choice(samples)
            begin = chance.randrange(len(other))
            data[at:end] = other[begin : begin + chance.choice((4, 40, 400))]
        elif way == 4 and data:
            place = chance.randrange(len(data))
            data[place] ^= 1 << chance.randrange(8)
        elif way == 5:
            data[at:end] = chance.choice(
                (b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"&#x110000;", b"\xe2\x80\xae", b"<", b'"', b"%")
            )
        else:
            data[at:at] = str(chance.choice((-1, 0, 2**31, 2**63, 10**400, "1e999", "NaN"))).encode()
        del data[200_000:]
    return bytes(data)


def try_document(data: bytes, chance: random.Random) -> None:
    headers = (("content-type", chance.choice(TYPES)), ("x-robots-tag", "noarchive"), ("link", "<x>; rel=next"))
    page = Page(URL, URL, 200, headers, data, 1.0, 0.1)
    result = process_page(page, Visit(URL, URL, "fuzz.example", 1), Settings(), chosen(["all"]))
    found = [finding for finding in result.findings if finding.code in DEFECTS]
    assert not found, found
    for _ in ox.parse(result.quads.nquads, ox.RdfFormat.N_QUADS, lenient=True):
        pass


def try_warc(data: bytes, chance: random.Random) -> None:
    folder = Path(sys.argv[-1]).parent
    file = folder / chance.choice(("fuzz.warc.gz", "fuzz.warc"))
    file.write_bytes(data)
    findings: list[object] = []
    for item in read_files([file], LimitSettings(), default_graph="", now=1.0, report=findings.append):
        assert item.page.url


def try_query(data: bytes, chance: random.Random) -> None:
    text = data.decode("utf-8", "replace")
    try:
        checked = check(text, LimitSettings())
    except QuadloomError:
        return
    try:
        for _ in ox.Store().query(checked.text, use_default_graph_as_union=True):  # type: ignore[union-attr]
            pass
    except (SyntaxError, ValueError, OSError, RuntimeError, TypeError) as error:
        assert "service" not in str(error).lower() or "expected" in str(error), f"the guard let it pass: {text!r}"


def try_settings(data: bytes, chance: random.Random) -> None:
    file = Path(sys.argv[-1]).parent / "fuzz.toml"
    file.write_bytes(data)
    with contextlib.suppress(SettingsError):
        settings = load(config=file, environ={}).settings
        Guard(settings.guard)
        FrontierPolicy.from_settings(settings)
        for name in ("min_interval", "max_interval", "dead_span", "importance_every"):
            length_of(name, getattr(settings.freshness, name))


def warc_samples() -> list[bytes]:
    pages = [Page(URL, URL, 200, (("content-type", "text/html"),), body, 1e9, 0.1) for body in DOCUMENTS[:3]]
    packed = file_header("x.warc.gz", 0.0) + b"".join(encode(page).member for page in pages)
    return [packed, gzip.decompress(packed)]


TARGETS: dict[str, tuple[Callable[[bytes, random.Random], None], Callable[[], list[bytes]]]] = {
    "document": (try_document, lambda: DOCUMENTS),
    "warc": (try_warc, warc_samples),
    "query": (try_query, lambda: QUERIES),
    "settings": (try_settings, lambda: SETTINGS),
}


def main() -> None:
    faulthandler.enable()
    target, seed, seconds, file = sys.argv[1:5]
    attempt, samples = TARGETS[target][0], TARGETS[target][1]()
    chance = random.Random(f"{target} {seed}")
    until, count = time.process_time() + float(seconds), 0
    with io.FileIO(file, "w") as last:
        while time.process_time() < until:
            data = mutated(chance, samples)
            last.seek(0)
            last.truncate()
            last.write(data)
            attempt(data, random.Random(data))
            count += 1
    print(count)


def replay() -> None:
    """All inputs that were ever found, as one run."""
    found = sorted((CORPUS / "fuzz" / sys.argv[1]).glob("*"))
    for path in found:
        data = path.read_bytes()
        TARGETS[sys.argv[1]][0](data, random.Random(data))
    print(len(found))


if __name__ == "__main__":
    replay() if sys.argv[2] == "replay" else main()
