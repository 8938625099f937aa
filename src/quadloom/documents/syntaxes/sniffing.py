"""What bytes are, by their content: magic numbers, the root element of XML, the first keys of JSON, RDF in text.

Every test reads at most 64 KiB, so the cost does not depend on the size of the body.
"""

from __future__ import annotations

import contextlib
import re
from typing import NamedTuple
from xml.parsers import expat

import msgspec
import re2

from quadloom.model.document import Kind

SNIFFED_BYTES = 64 * 1024
ZIP = "application/zip"

_MAGIC: tuple[tuple[bytes, Kind, str], ...] = (
    (b"%PDF-", "pdf", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image", "image/png"),
    (b"GIF8", "image", "image/gif"),
    (b"\xff\xd8\xff", "image", "image/jpeg"),
    (b"BM", "image", "image/bmp"),
    (b"II*\0", "image", "image/tiff"),
    (b"MM\0*", "image", "image/tiff"),
    (b"\0\0\1\0", "image", "image/x-icon"),
    (b"PK\3\4", "archive", ZIP),
    (b"PK\5\6", "archive", ZIP),
    (b"\x1f\x8b", "archive", "application/gzip"),
    (b"7z\xbc\xaf\x27\x1c", "archive", "application/x-7z-compressed"),
    (b"Rar!\x1a\x07", "archive", "application/vnd.rar"),
    (b"BZh", "archive", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "archive", "application/x-xz"),
    (b"\x28\xb5\x2f\xfd", "archive", "application/zstd"),
    (b"OggS", "audio", "application/ogg"),
    (b"fLaC", "audio", "audio/flac"),
    (b"ID3", "audio", "audio/mpeg"),
    (b"\x1aE\xdf\xa3", "video", "video/webm"),
    (b"\0asm", "binary", "application/wasm"),
    (b"\x7fELF", "binary", "application/x-executable"),
    (b"wOFF", "binary", "font/woff"),
    (b"wOF2", "binary", "font/woff2"),
)
_MAGIC_BEGINNINGS = frozenset(number[:1] for number, _, _ in _MAGIC)  # `<` and `{` are not among them
_SHORT_MAGIC = frozenset((b"BM", b"BZh", b"ID3", b"GIF8"))  # could begin a text too: a control byte must follow soon

# The beginnings that the MIME Sniffing standard takes for HTML, section 7.1.
# What was skipped is never tried in another way: with groups that backtrack, 40 comments took longer than a lifetime.
_HTML = re.compile(
    rb"(?>\s+|<!--.*?-->|<\?xml[^>]*>)*+<(?:!doctype\s+html|html|head|body|script|iframe|h1|div|font|table|a|style|title|b|br|p"
    rb"|meta|link|main|article|section|nav|header|span|ul|form|img|center)[\s/>]",
    re.S | re.I,
)
_XML_START = re.compile(rb"\s*<(?:\?xml[\s?]|[A-Za-z_!])")
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
# To delete these from the first KiB and see whether anything is left takes 1.4 µs, to search for the others 6.7.
_TEXTUAL = bytes(byte for byte in range(256) if not _BINARY.match(bytes((byte,))))

_XHTML = "http://www.w3.org/1999/xhtml"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RSS1 = frozenset(("http://purl.org/rss/1.0/", "http://my.netscape.com/rdf/simple/0.9/", "http://purl.org/net/rss1.1#"))
_ROOTS: dict[tuple[str, str], Kind] = {
    (_XHTML, "html"): "xhtml",
    ("http://www.w3.org/2000/svg", "svg"): "svg",
    ("http://schemas.xmlsoap.org/wsdl/", "definitions"): "wsdl",
    ("http://www.w3.org/ns/wsdl", "description"): "wsdl",
    ("http://www.w3.org/2001/XMLSchema", "schema"): "xsd",
    ("http://www.w3.org/2005/Atom", "feed"): "atom",
    ("http://www.w3.org/2005/Atom", "entry"): "atom",
    ("http://purl.org/atom/ns#", "feed"): "atom",
    ("http://www.w3.org/1999/XSL/Transform", "stylesheet"): "xslt",
    ("http://www.w3.org/1999/XSL/Transform", "transform"): "xslt",
    ("http://a9.com/-/spec/opensearch/1.1/", "OpenSearchDescription"): "opensearch",
    ("http://a9.com/-/spec/opensearchdescription/1.0/", "OpenSearchDescription"): "opensearch",
    (_RDF, "RDF"): "rdfxml",
}
_LOCAL_ROOTS: dict[str, Kind] = {"rss": "rss", "opml": "opml", "urlset": "sitemap", "sitemapindex": "sitemapindex"}

_JSON_FEED = re.compile(rb'"version"\s*:\s*"https?:\\?/\\?/(?:www\.)?jsonfeed\.org\\?/version\\?/')
_JSON_LD = re.compile(rb'"@(?:context|graph|id|type)"\s*:')
# Plain text is seldom RDF, so these are compiled when they are first needed: together they take as long as four pages.
_TERM = rb'(?:<[^<>"{}|^`\\\x00-\x20]*>|_:[^\s<>"]+)'
_OBJECT = rb'(?:%s|"(?:[^"\\\n\r]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^<[^<>\s]*>)?)' % _TERM
_TRIPLE = rb"\s*%s\s*<[^<>\s]*>\s*%s\s*\.\s*(?:#.*)?$" % (_TERM, _OBJECT)
_QUAD = rb"\s*%s\s*<[^<>\s]*>\s*%s\s*%s\s*\.\s*(?:#.*)?$" % (_TERM, _OBJECT, _TERM)
# Turtle without prefixes, line by line: a whole statement, or its continuation after `;` or `,`.
_TURTLE_OBJECT = rb"(?:%s|[+-]?[0-9][0-9.eE+-]*|true|false)" % _OBJECT
_OBJECTS = rb"%s(?:\s*,\s*%s)*" % (_TURTLE_OBJECT, _TURTLE_OBJECT)
_PAIR = rb"(?:a|<[^<>\s]*>)\s+%s" % _OBJECTS
_PAIRS = rb"%s(?:\s*;\s*%s)*" % (_PAIR, _PAIR)
_TURTLE_START = rb"\s*%s\s+%s\s*[.;,]\s*(?:#.*)?$" % (_TERM, _PAIRS)
_TURTLE_LINE = rb"\s*(?:%s\s+)?(?:%s|%s)\s*[.;,]\s*(?:#.*)?$" % (_TERM, _PAIRS, _OBJECTS)
_STRING = re.compile(rb'"(?:[^"\\\n\r]|\\.)*+"')
_RELATIVE = re.compile(rb"<(?![A-Za-z][A-Za-z0-9+.-]*:)[^<>\s]*>")
_DIRECTIVE = re.compile(
    rb"(?:\s|#[^\n]*\n)*(?:@prefix\s+[^\s:]*:\s*<|@base\s+<|(?i:prefix)\s+[^\s:]*:\s*<|(?i:base)\s+<)", re.M
)
# Looked for in 64 KiB that may be all dots, at each of which a name could begin: linear with RE2 alone.
_GRAPH = re2.compile(rb"(?:^|[.}\s])(?:(?i:graph)\s+)?(?:<[^<>\s]*>|[\w.-]*:[\w.-]*|_:\w+)?\s*\{")


class XmlRoot(msgspec.Struct, frozen=True):
    """The root element of an XML document and the namespaces declared on it."""

    namespace: str
    local: str
    declared: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return f"{{{self.namespace}}}{self.local}" if self.namespace else self.local


class XmlFault(NamedTuple):
    """A place in a document, from 1."""

    line: int
    column: int


def magic(body: bytes) -> tuple[Kind, str] | None:
    """Kind and media type by magic number; None if the bytes could be text."""
    for number, kind, media_type in _MAGIC if body[:1] in _MAGIC_BEGINNINGS else ():
        if body.startswith(number) and (number not in _SHORT_MAGIC or _BINARY.search(body, 0, 64)):
            return kind, media_type
    if body[:4] == b"RIFF":
        names: dict[bytes, tuple[Kind, str]] = {
            b"WEBP": ("image", "image/webp"), b"WAVE": ("audio", "audio/wav"), b"AVI ": ("video", "video/avi"),
        }  # fmt: skip
        return names.get(body[8:12])
    if body[4:8] == b"ftyp":
        return ("image", "image/avif") if body[8:12] in (b"avif", b"heic", b"mif1") else ("video", "video/mp4")
    return None


def looks_binary(body: bytes) -> bool:
    """Control characters in the first KiB that no text has; UTF-16 must be ruled out before."""
    return bool(body[:1024].translate(None, _TEXTUAL))


def looks_html(body: bytes) -> bool:
    return _HTML.match(body, 0, 4096) is not None


def looks_xml(body: bytes) -> bool:
    return _XML_START.match(body, 0, 1024) is not None


def xml_root(utf8: bytes) -> XmlRoot | None:
    """Root element by a streaming parse of the first 64 KiB, or None if there is none."""
    declared: set[str] = set()
    found: list[str] = []

    def start(name: str, _attributes: object) -> None:
        found.append(name)
        raise _RootFound

    parser = expat.ParserCreate("utf-8", " ")
    parser.StartElementHandler = start
    parser.StartNamespaceDeclHandler = lambda _prefix, iri: declared.add(iri or "")
    with contextlib.suppress(_RootFound, expat.ExpatError):
        parser.Parse(utf8[:SNIFFED_BYTES].lstrip(), False)
    if not found:
        return None
    namespace, _, local = found[0].rpartition(" ")
    return XmlRoot(namespace, local, frozenset(declared))


class _RootFound(Exception):
    pass


def xml_fault(utf8: bytes) -> XmlFault | None:
    """The first place at which an XML document is not well-formed; None if it is."""
    parser = expat.ParserCreate("utf-8", " ")
    parser.UseForeignDTD(True)  # XHTML's named entities come from a DTD that is never loaded: skipped, not errors
    try:
        parser.Parse(utf8, True)
    except expat.ExpatError as error:
        return XmlFault(error.lineno, error.offset + 1)
    return None


def kind_of_root(root: XmlRoot) -> Kind:
    """The kind an XML root element stands for; `xml` for all that are not known."""
    if root.namespace == _RDF and root.local == "RDF" and root.declared & _RSS1:
        return "rss"  # RSS 0.90 and 1.0: a feed that is RDF/XML; `Document.root` keeps the difference
    known = _ROOTS.get((root.namespace, root.local))
    if known:
        return known
    if not root.namespace and root.local.lower() == "html":
        return "html"
    return _LOCAL_ROOTS.get(root.local, "xml")


def json_kind(utf8: bytes) -> Kind:
    """JSON-LD, JSON Feed or plain JSON, by keys near the beginning."""
    head = utf8[:SNIFFED_BYTES]
    if _JSON_FEED.search(head):
        return "jsonfeed"
    return "jsonld" if _JSON_LD.search(head) else "json"


def is_json(utf8: bytes) -> bool:
    """Whether the whole body is JSON. Nothing is built: msgspec only skips over the values."""
    if utf8.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        msgspec.json.decode(utf8, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def rdf_text_kind(utf8: bytes) -> Kind | None:
    """Turtle, TriG, N-Triples or N-Quads in what was labelled plain text; None if it is none of them."""
    head = utf8[:SNIFFED_BYTES]
    lines = [line for line in head[:8192].split(b"\n")[:12] if line.strip() and not line.lstrip().startswith(b"#")]
    if len(head) > 8192 and len(lines) > 1:
        lines.pop()  # may be cut
    if lines and all(re.match(_TRIPLE, line) for line in lines):
        # N-Triples knows absolute IRIs only; the same lines with relative ones are Turtle.
        return "turtle" if _RELATIVE.search(_STRING.sub(b"", head)) else "ntriples"
    if lines and all(re.match(_QUAD, line) or re.match(_TRIPLE, line) for line in lines):
        return "nquads"
    if _DIRECTIVE.match(head):
        return "trig" if _GRAPH.search(head) else "turtle"
    if lines and re.match(_TURTLE_START, lines[0]) and all(re.match(_TURTLE_LINE, line) for line in lines):
        return "turtle"
    return None
