"""DETECT: what a body is, whatever its label says.

Three witnesses in the order of MultiCrawler: the extension of the URL, the Content-Type header, the content. Labels on
the web are often wrong, so content wins if it is unambiguous, and a `Finding` records the contradiction. `reasons`
explain to a person how the verdict was reached.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from quadloom.documents.syntaxes import sniffing
from quadloom.documents.syntaxes.charset import Charset, charset_of, utf8
from quadloom.model.document import Document, Kind
from quadloom.model.finding import Finding

_EXTENSIONS: dict[str, Kind] = {
    "html": "html", "htm": "html", "xhtml": "xhtml", "xht": "xhtml", "xml": "xml", "svg": "svg", "wsdl": "wsdl",
    "xsd": "xsd", "rss": "rss", "atom": "atom", "opml": "opml", "xsl": "xslt", "xslt": "xslt", "rdf": "rdfxml",
    "owl": "rdfxml", "rdfs": "rdfxml", "ttl": "turtle", "n3": "turtle", "trig": "trig", "nt": "ntriples",
    "nq": "nquads", "jsonld": "jsonld", "json": "json", "txt": "text", "md": "text", "csv": "text", "png": "image",
    "jpg": "image", "jpeg": "image", "gif": "image", "webp": "image", "ico": "image", "avif": "image", "pdf": "pdf",
    "docx": "office", "odt": "office", "mp3": "audio", "ogg": "audio", "wav": "audio", "flac": "audio",
    "mp4": "video", "webm": "video", "zip": "archive",
    "gz": "archive", "tgz": "archive", "bz2": "archive", "xz": "archive", "7z": "archive", "rar": "archive",
    "css": "css", "js": "javascript", "mjs": "javascript", "exe": "binary", "woff": "binary", "woff2": "binary",
}  # fmt: skip
_MEDIA_TYPES: dict[str, Kind] = {
    "text/html": "html", "application/xhtml+xml": "xhtml", "text/xml": "xml", "application/xml": "xml",
    "image/svg+xml": "svg", "application/wsdl+xml": "wsdl", "application/rss+xml": "rss", "text/rss+xml": "rss",
    "application/atom+xml": "atom", "application/feed+json": "jsonfeed", "text/x-opml": "opml",
    "text/x-opml+xml": "opml",
    "application/opensearchdescription+xml": "opensearch", "application/xslt+xml": "xslt", "text/xsl": "xslt",
    "application/rdf+xml": "rdfxml", "text/rdf+xml": "rdfxml", "application/owl+xml": "xml", "text/turtle": "turtle",
    "application/x-turtle": "turtle", "application/turtle": "turtle", "text/n3": "turtle", "text/rdf+n3": "turtle",
    "application/trig": "trig", "application/x-trig": "trig", "application/n-triples": "ntriples",
    "application/n-quads": "nquads", "text/x-nquads": "nquads", "application/ld+json": "jsonld",
    "application/activity+json": "jsonld", "application/json": "json", "text/json": "json", "text/plain": "text",
    "text/markdown": "text", "text/csv": "text", "application/pdf": "pdf", "text/css": "css",
    "text/javascript": "javascript", "application/javascript": "javascript", "application/x-javascript": "javascript",
    "application/zip": "archive", "application/gzip": "archive", "application/x-gzip": "archive",
    "application/x-tar": "archive", "application/vnd.oasis.opendocument.text": "office",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "office",
}  # fmt: skip
_BLANK = b"\t\n\f\r \0"
_NO_LABEL = frozenset(
    ("", "application/octet-stream", "binary/octet-stream", "application/x-unknown", "unknown/unknown")
)
_TYPES_OF_KIND: dict[Kind, str] = {
    "html": "text/html", "xhtml": "application/xhtml+xml", "xml": "application/xml", "svg": "image/svg+xml",
    "wsdl": "application/wsdl+xml", "xsd": "application/xml", "rss": "application/rss+xml",
    "atom": "application/atom+xml", "jsonfeed": "application/feed+json", "opml": "text/x-opml",
    "sitemap": "application/xml", "sitemapindex": "application/xml",
    "opensearch": "application/opensearchdescription+xml", "xslt": "application/xslt+xml",
    "rdfxml": "application/rdf+xml", "turtle": "text/turtle", "trig": "application/trig",
    "ntriples": "application/n-triples", "nquads": "application/n-quads", "jsonld": "application/ld+json",
    "json": "application/json", "text": "text/plain",
}  # fmt: skip

XML_KINDS: frozenset[Kind] = frozenset(
    ("xhtml", "xml", "svg", "wsdl", "xsd", "rss", "atom", "opml", "sitemap", "sitemapindex", "opensearch", "xslt",
     "rdfxml")
)  # fmt: skip
_RDF_TEXT: frozenset[Kind] = frozenset(("turtle", "trig", "ntriples", "nquads"))
_JSON: frozenset[Kind] = frozenset(("json", "jsonld", "jsonfeed"))
_BYTES: frozenset[Kind] = frozenset(("image", "pdf", "office", "audio", "video", "archive", "binary"))
# Labels that say less than the content does, without being wrong: a sitemap is XML, JSON-LD is JSON.
_REFINES: dict[Kind, frozenset[Kind]] = {
    "xml": XML_KINDS,
    "json": _JSON,
    "text": _RDF_TEXT | _JSON | XML_KINDS,
    "rdfxml": frozenset(("rss",)),
    "rss": frozenset(("atom", "rdfxml")),
}


class Detected(NamedTuple):
    """A verdict, and the body in UTF-8 if the verdict needed it."""

    document: Document
    utf8: bytes | None


def detect(body: bytes, *, url: str, content_type: str | None) -> Document:
    """Say what `body` is. Never raises; unknown bytes are `binary`, no bytes are `empty`."""
    return detect_body(body, url=url, content_type=content_type).document


def detect_body(body: bytes, *, url: str, content_type: str | None) -> Detected:
    """As `detect`, for callers that read the body afterwards."""
    media_type = (content_type or "").partition(";")[0].strip().lower()
    detection = _Detection(body, media_type, content_type)
    detection.read_labels(url)
    if body[:1] in _BLANK and not body.strip(_BLANK):
        return Detected(Document("empty", media_type, reasons=(*detection.reasons, "the body is empty")), None)
    kind = detection.content_kind()
    if kind is None:
        kind = detection.label or "binary"
        detection.reasons.append(f"the content gives no sign of its own: taken as {kind}")
    if kind != detection.label:
        detection.contradict(kind)
    charset = detection.charset
    textual = kind not in _BYTES
    document = Document(
        kind,
        detection.media_type_of(kind),
        charset.name if textual else "",
        charset.source if textual else "",
        root=detection.root,
        reasons=tuple(detection.reasons),
        findings=tuple(detection.findings),
    )
    return Detected(document, detection.utf8 if textual else None)


class _Detection(msgspec.Struct):
    """The detection of one body: the witnesses, what they said, and what contradicts."""

    body: bytes
    media_type: str
    content_type: str | None
    label: Kind | None = None
    root: str = ""
    sniffed_type: str = ""
    reasons: list[str] = []
    findings: list[Finding] = []
    charset: Charset = Charset("", "default")
    utf8: bytes | None = None

    def read_labels(self, url: str) -> None:
        path = url.partition("#")[0].partition("?")[0]
        name = path[path.rfind("/") + 1 :]
        extension = name[name.rfind(".") + 1 :].lower() if "." in name and path.count("/") > 2 else ""
        by_extension = _EXTENSIONS.get(extension)
        if by_extension:
            self.reasons.append(f"extension .{extension} means {by_extension}")
        if self.media_type in _NO_LABEL:
            self.label = by_extension
            self.reasons.append(
                f"Content-Type {self.media_type} says nothing" if self.media_type else "no Content-Type"
            )
            return
        self.label = _MEDIA_TYPES.get(self.media_type) or _kind_of_family(self.media_type)
        self.reasons.append(f"Content-Type {self.media_type} means {self.label or 'nothing known'}")
        # A general label and a telling extension: data.ttl as text/plain, onto.owl as application/xml.
        if by_extension and self.label and by_extension in _REFINES.get(self.label, ()):
            self.label = by_extension

    def content_kind(self) -> Kind | None:
        """The verdict of the content, or None if it gives no sign."""
        found = sniffing.magic(self.body)
        if found:
            self.sniffed_type = found[1]
            self.reasons.append(f"the first bytes are those of {found[1]}")
            return "office" if found[1] == sniffing.ZIP and self.label == "office" else found[0]
        xml = self.label in XML_KINDS or (self.label != "html" and sniffing.looks_xml(self.body))
        self.charset = charset_of(self.body, self.content_type, xml=xml)
        self.reasons.append(f"charset {self.charset.name} by {self.charset.source}")
        if self.charset.declared or self.charset.damaged:
            self._report_charset()
        if not self.charset.name.startswith("utf-16") and sniffing.looks_binary(self.body):
            if self.label == "html" or sniffing.looks_html(self.body):
                return "html"  # a stray control character does not make a page a binary
            self.reasons.append("control characters near the beginning: not text")
            return self.label if self.label in _BYTES else "binary"
        self.utf8 = text = utf8(self.body, self.charset.name, is_utf8=self.charset.is_utf8)
        return self._xml_or_html(text) or self._data(text)

    def _xml_or_html(self, text: bytes) -> Kind | None:
        if self.label in ("css", "javascript", *_RDF_TEXT):
            return None  # `<` begins an IRI in Turtle; style sheets and scripts have no root
        declared = text.lstrip().startswith(b"<?xml")
        if not declared and self.label in (None, "text") and sniffing.rdf_text_kind(text):
            return None  # `<a> <b> <c> .` would do as the beginning of XML
        if not declared and self.label in (None, "html") and sniffing.looks_html(text):
            self.reasons.append("begins like HTML")
            return "html"
        if not sniffing.looks_xml(text):
            return None
        root = sniffing.xml_root(text)
        if root is None:
            return self._no_root(text)
        kind = sniffing.kind_of_root(root)
        self.reasons.append(f"root element {root.name}")
        if kind == "xhtml":
            return self._xhtml(text, root)
        if kind == "xml" and not declared and (self.label == "html" or sniffing.looks_html(text)):
            return "html"  # any tag may begin a page; only a root known for something else rules it out
        if kind == "xml" and not declared and self.label == "text":
            self.reasons.append("begins with a tag, as examples of code do: text, as it is labelled")
            return "text"
        self.root = root.name
        if kind == "xml" and self.label in XML_KINDS:
            return self.label  # RDF/XML may begin with any typed node; vendors extend feeds
        return kind

    def _no_root(self, text: bytes) -> Kind | None:
        if sniffing.looks_html(text) or self.label == "html":
            self.reasons.append("begins like HTML")
            return "html"
        return None

    def _xhtml(self, text: bytes, root: sniffing.XmlRoot) -> Kind:
        """XHTML is read as XML only if it was sent as XML and is well-formed, as in a browser."""
        if self.label in ("html", None, "text"):
            self.reasons.append("XHTML that was not sent as XML is read as HTML")
            return "html"
        fault = sniffing.xml_fault(text)
        if fault is None:
            self.root = root.name
            return "xhtml"
        self.reasons.append("sent as XHTML but not well-formed: read as HTML")
        self._find("xhtml-not-well-formed", f"XHTML breaks off at line {fault.line}", "close every element", *fault)
        return "html"

    def _data(self, text: bytes) -> Kind | None:
        if self.label in _JSON or sniffing.is_json(text):
            kind = sniffing.json_kind(text)
            if self.label in ("jsonld", "jsonfeed"):
                kind = self.label
            self.reasons.append("is JSON" if kind == "json" else f"is JSON with the keys of {kind}")
            return kind if kind != "jsonld" or self.label != "jsonfeed" else "jsonfeed"
        if self.label in _RDF_TEXT:
            return self.label
        if self.label in (None, "text", "html", "xml", "rdfxml"):
            rdf = sniffing.rdf_text_kind(text)
            if rdf:
                self.reasons.append(f"reads like {rdf}")
                return rdf
        if self.label is None or self.label in _BYTES:
            self.reasons.append("is text without markup")
            return "text"
        return None

    def contradict(self, kind: Kind) -> None:
        label = self.label
        if kind == "archive" and label == "binary":
            return  # office documents, e-books and programs are ZIP files with types of their own
        if label is None or kind in _REFINES.get(label, ()) or {kind, label} == {"html", "xhtml"}:
            return
        self._find(
            "wrong-content-type" if self.media_type not in _NO_LABEL else "wrong-extension",
            f"labelled {self.media_type or label} but the content is {kind}",
            f"send it as {self.media_type_of(kind)}",
        )

    def media_type_of(self, kind: Kind) -> str:
        if kind == self.label and self.media_type not in _NO_LABEL:
            return self.media_type
        known = self.sniffed_type or _TYPES_OF_KIND.get(kind, "")
        return known or ("application/octet-stream" if kind in _BYTES else self.media_type)

    def _report_charset(self) -> None:
        charset = self.charset
        if charset.declared:
            self._find("wrong-charset", f"declared {charset.declared} but is UTF-8", "declare charset=utf-8")
        else:
            self._find("bad-bytes", f"has bytes that are not {charset.name}", "send the encoding that is declared")

    def _find(self, code: str, message: str, advice: str, line: int = 0, column: int = 0) -> None:
        self.findings.append(
            Finding(code, message, "warning", "detect", line=line, column=column, advice=advice, syntax="")
        )


def _kind_of_family(media_type: str) -> Kind | None:
    family, _, rest = media_type.partition("/")
    if rest.endswith("+xml"):
        return "xml"
    if rest.endswith("+json"):
        return "json"
    if family == "image":
        return "image"
    if family == "audio":
        return "audio"
    if family == "video":
        return "video"
    if family == "text":
        return "text"
    return "binary" if family in ("font", "application") else None
