"""XML and XSLT made to hurt: nothing is read, written or fetched, and nothing takes longer than its limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from lxml import etree

from quadloom.crawling.inspect.inspection import inspect
from quadloom.documents.syntaxes.xml import stylesheet_folder as xslt_folder
from quadloom.documents.syntaxes.xml.xslt import compiled
from quadloom.documents.transform import transform
from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Transformed
from quadloom.settings import LimitSettings, Settings, TransformSettings

URL = "https://site.example/hostile"
SECRET = "the-secret-of-a-file"
XSL = (
    '<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform" xmlns:exsl="http://exslt.org/common"'
    ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:v="http://v.example/"'
    ' extension-element-prefixes="exsl">'
    "{body}</xsl:stylesheet>"
)
OUT = '<rdf:RDF><rdf:Description rdf:about=""><v:x>{0}</v:x></rdf:Description></rdf:RDF>'


class Canary:
    """A listener that must never be asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked = 0


@pytest.fixture
def canary() -> Iterator[Canary]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.asked += 1
            self.send_response(200)
            self.end_headers()
            self.wfile.write(XSL.format(body="").encode())

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen = Canary(f"http://127.0.0.1:{server.server_address[1]}/x.xsl")
    Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield seen
    server.shutdown()
    server.server_close()


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.xml"
    file.write_text(f"<s>{SECRET}</s>")
    return file


def read(body: bytes, content_type: str = "application/xml") -> Transformed:
    started = time.process_time()
    result = transform(body, url=URL, content_type=content_type)
    assert time.process_time() - started < 5.0
    return result


def run(body: str) -> str:
    """What a stylesheet gives, or why it gives nothing."""
    try:
        sheet = compiled(XSL.format(body=body).encode(), name="hostile.xsl")
        return sheet.apply(etree.fromstring("<a><b/><b/></a>"), url=URL).body.decode()
    except SyntaxInvalid as error:
        return error.code


@pytest.mark.parametrize("kind", ["<a>&e;</a>", '<rss version="2.0"><channel><title>&e;</title></channel></rss>'])
def test_external_entities_are_never_read(kind: str, secret: Path, canary: Canary) -> None:
    for target in (secret.as_uri(), canary.url):
        for doctype in (f'<!ENTITY e SYSTEM "{target}">', f'<!ENTITY % p SYSTEM "{target}"> %p; <!ENTITY e "x">'):
            result = read(f"<!DOCTYPE a [{doctype}]>{kind}".encode())
            assert SECRET not in result.nquads.decode() + result.text
    external = read(f'<!DOCTYPE a SYSTEM "{canary.url}">{kind}'.encode())
    assert SECRET not in external.nquads.decode()
    assert canary.asked == 0


def test_xinclude_is_not_followed(secret: Path) -> None:
    body = f'<a xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="{secret.as_uri()}" parse="text"/></a>'
    assert SECRET not in read(body.replace("<a", "<thing").replace("</a>", "</thing>").encode()).nquads.decode()


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 12))


@pytest.mark.parametrize(
    "place", ["<thing>&l11;</thing>", '<thing x="&l11;"/>', "<rss><channel><title>&l11;</title></channel></rss>"]
)
def test_a_billion_laughs_are_not_heard(place: str) -> None:
    result = read(f'<!DOCTYPE x [<!ENTITY l0 "ha">{LAUGHS}]>{place}'.encode())
    assert len(result.nquads) < 100_000
    assert result.findings


def test_quadratic_entities_are_refused() -> None:
    body = f'<!DOCTYPE x [<!ENTITY e "{"x" * 60_000}">]><thing>{"&e;" * 60_000}</thing>'
    result = read(body.encode())
    assert len(result.nquads) < 100_000
    assert result.findings


@pytest.mark.parametrize("tag", ["thing", "rss", "feed", "urlset", "opml", "svg"])
@pytest.mark.parametrize("depth", [300, 100_000])
def test_deep_nesting_ends(tag: str, depth: int) -> None:
    inner = f"<{tag}>" * depth + f"</{tag}>" * depth
    result = read(f"<{tag}>{inner}</{tag}>".encode())
    assert len(result.nquads) < 10_000_000


def test_wide_documents_are_cut_at_the_limit_of_statements() -> None:
    body = b"<thing>" + b'<e a="1" b="2"/>' * 100_000 + b"</thing>"
    result = read(body)
    assert result.nquads.count(b"\n") == LimitSettings().quads_per_page
    assert "too-many-quads" in [finding.code for finding in result.findings]


def test_a_sitemap_of_the_largest_size_is_read_in_time() -> None:
    pages = b"".join(
        b"<url><loc>https://site.example/%d</loc><lastmod>2025-01-01</lastmod></url>" % n for n in range(50_000)
    )
    result = read(b'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">%s</urlset>' % pages)
    assert len(result.links) == 50_000, "sitemaps.org allows so many, whatever the limit of a page"
    assert len(result.lastmods) == 50_000


@pytest.mark.parametrize("way", ["import", "include"])
def test_stylesheets_do_not_import_files_or_addresses(way: str, secret: Path, canary: Canary) -> None:
    for target in (secret.as_uri(), str(secret), canary.url):
        assert run(f'<xsl:{way} href="{target}"/>') == "xslt-forbidden"
    assert canary.asked == 0


def test_stylesheets_do_not_read_with_document(secret: Path, canary: Canary) -> None:
    for target in (secret.as_uri(), str(secret), canary.url, ""):
        text = OUT.format(f"<xsl:copy-of select=\"document('{target}')\"/>")
        result = run(f'<xsl:template match="/">{text}</xsl:template>')
        assert SECRET not in result
        assert result == "xslt-failed"
    assert canary.asked == 0


def test_stylesheets_do_not_write(tmp_path: Path) -> None:
    target = tmp_path / "written"
    for href in (target.as_uri(), str(target)):
        run(f'<xsl:template match="/"><exsl:document href="{href}">x</exsl:document>{OUT.format("x")}</xsl:template>')
        run(f'<xsl:template match="/"><xsl:document href="{href}">x</xsl:document>{OUT.format("x")}</xsl:template>')
    assert not target.exists()


def test_entities_of_a_stylesheet_are_not_read(secret: Path, canary: Canary) -> None:
    for target in (secret.as_uri(), canary.url):
        body = XSL.format(body=f'<xsl:template match="/">{OUT.format("&e;")}</xsl:template>')
        source = f'<!DOCTYPE x [<!ENTITY e SYSTEM "{target}">]>{body}'.encode()
        try:
            result = compiled(source, name="hostile.xsl").apply(etree.fromstring("<a/>"), url=URL).body.decode()
        except SyntaxInvalid as error:
            result = error.message
        assert SECRET not in result
    assert canary.asked == 0


def test_regular_expressions_of_exslt_are_off() -> None:
    pattern = "regexp:test('aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab', '(a+)+$')"
    text = OUT.format(f'<xsl:value-of xmlns:regexp="http://exslt.org/regular-expressions" select="{pattern}"/>')
    started = time.process_time()
    assert run(f'<xsl:template match="/">{text}</xsl:template>') == "xslt-failed"
    assert time.process_time() - started < 1.0


def test_endless_recursion_ends_by_itself() -> None:
    assert run('<xsl:template match="/" name="t"><xsl:call-template name="t"/></xsl:template>') == "xslt-failed"


POWER = (
    '<!-- quadloom: root=thing --><xsl:template match="/"><xsl:call-template name="t">'
    '<xsl:with-param name="n" select="60"/>'
    '</xsl:call-template></xsl:template><xsl:template name="t"><xsl:param name="n"/><xsl:if test="$n &gt; 0">'
    '<xsl:call-template name="t"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template>'
    '<xsl:call-template name="t"><xsl:with-param name="n" select="$n - 1"/></xsl:call-template></xsl:if></xsl:template>'
)
DOUBLING = (
    '<!-- quadloom: root=thing --><xsl:template match="/"><xsl:call-template name="t"><xsl:with-param name="s" '
    'select="\'0123456789abcdef\'"/></xsl:call-template></xsl:template><xsl:template name="t"><xsl:param name="s"/>'
    '<xsl:call-template name="t"><xsl:with-param name="s" select="concat($s, $s)"/></xsl:call-template></xsl:template>'
)


@pytest.mark.parametrize(("body", "megabytes"), [(POWER, 768), (DOUBLING, 300)], ids=["2^60 calls", "doubling text"])
def test_runaway_stylesheets_are_ended_by_the_runner(tmp_path: Path, body: str, megabytes: int) -> None:
    (tmp_path / "hostile.xsl").write_text(XSL.format(body=body))
    xslt_folder.stylesheet_folder.cache_clear()
    settings = Settings(
        transform=TransformSettings(stylesheets=str(tmp_path)),
        limits=LimitSettings(transform_seconds=1.0, transform_bytes=megabytes << 20),
    )
    started = time.monotonic()
    seen = inspect(b"<thing/>", settings=settings, content_type="application/xml")
    assert time.monotonic() - started < 30.0
    assert seen.failure or "xslt-failed" in [finding.code for finding in seen.findings]
    assert all("Traceback" not in finding.message for finding in seen.findings)
