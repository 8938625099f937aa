"""RDF files (Turtle, TriG, N-Triples, N-Quads, RDF/XML) to N-Quads, by pyoxigraph behind `guards`.

`extract` is strict: a file that breaks its grammar raises. `read` keeps what precedes the defect, in N-Triples and
N-Quads also the lines after it, and the defect becomes a `Finding`; plug-ins may call it on RDF that they find inside
other files. `read_document` does so for the crawl.

An rdf:XMLLiteral is exclusive canonical XML: only the namespaces that an element or attribute uses. The native parser
copies every namespace in scope instead, so equal literals differ by the document around them. Before it sees a
document, each property element with parseType="Literal" is replaced by one whose text is the canonical XML and whose
datatype is rdf:XMLLiteral, which states the same triple (also if rdf:ID reifies it).
"""

from __future__ import annotations

import codecs
import contextlib
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Literal

import msgspec
import pyoxigraph as ox
from lxml import etree
from xxhash import xxh3_64_hexdigest

from quadloom.documents.syntaxes.guards import check_triple_terms, check_xml
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.sink import MAX_CHARACTERS, sink_limits
from quadloom.documents.syntaxes.terms import RDF
from quadloom.errors import SyntaxInvalid
from quadloom.model.finding import Finding

RdfKind = Literal["turtle", "trig", "ntriples", "nquads", "rdfxml"]
_FORMATS: dict[RdfKind, ox.RdfFormat] = {
    "turtle": ox.RdfFormat.TURTLE,
    "trig": ox.RdfFormat.TRIG,
    "ntriples": ox.RdfFormat.N_TRIPLES,
    "nquads": ox.RdfFormat.N_QUADS,
    "rdfxml": ox.RdfFormat.RDF_XML,
}
_WITHOUT_GRAPHS: frozenset[RdfKind] = frozenset(("turtle", "ntriples", "rdfxml"))
_KINDS: dict[str, RdfKind] = {str(kind): kind for kind in _FORMATS}
_MAX_DEFECTS = 20  # of a line-based file; with more it is something else under a wrong name
# Between literals: a line that ends with a literal ends with neither a blank node nor an IRI before the full stop.
_BLANK = re.compile(rb"(^_:[^ ]+|(?<= )_:[^ ]+(?= (?:(?:<[^<> ]*>|_:[^ ]+) )?\.$))", re.MULTILINE)
_DECLARATION = re.compile(rb"""\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([A-Za-z][\w.-]*)["'][^>]{0,200}\?>""")


class RdfRead(msgspec.Struct, frozen=True):
    """Statements of one file as N-Quads with blank nodes, and what was wrong with it."""

    nquads: bytes
    findings: tuple[Finding, ...]


def extract(body: bytes, *, kind: RdfKind, url: str) -> bytes:
    """All statements of a file, its relative IRIs resolved against `url`. Raises `SyntaxInvalid` with the place."""
    body = _prepared(body, kind)
    try:
        return _serialized(ox.parse(body, _FORMATS[kind], base_iri=url))
    except SyntaxError as error:
        raise _invalid(error) from None
    except ValueError as error:  # the base IRI
        raise SyntaxInvalid(str(error), code="syntax") from None


def read(body: bytes, *, kind: RdfKind, url: str, limit: int = 200_000, characters: int = MAX_CHARACTERS) -> RdfRead:
    """What can be read of a file: at most `limit` statements of `characters` in all, up to the first defect. Never
    raises. The same bytes give the same result: blank nodes are numbered in the order in which they appear, after a
    hash of the file, so that statements of several files can be put together."""
    try:
        body = _prepared(body, kind)
        parser = ox.parse(body, _FORMATS[kind], base_iri=url)
    except (SyntaxInvalid, SyntaxError, ValueError) as error:
        invalid = error if isinstance(error, SyntaxInvalid) else SyntaxInvalid(str(error), code="syntax")
        return RdfRead(nquads=b"", findings=(_finding(invalid, kind),))
    defects: list[SyntaxInvalid] = []
    statements = _until_defect(parser, defects, goes_on=kind in ("ntriples", "nquads"))
    written = _Written(characters)
    with contextlib.suppress(_Full):
        ox.serialize(islice(statements, limit), written, format=ox.RdfFormat.N_QUADS)  # type: ignore[arg-type]  # it only calls write
    nquads = written.lines(xxh3_64_hexdigest(body))
    findings = [_finding(defect, kind) for defect in defects]
    if written.full or next(statements, None) is not None:
        kept = nquads.count(b"\n")
        message = f"only the first {kept} statements were kept"
        findings.append(Finding(code="rdf-truncated", message=message, syntax=kind))
    return RdfRead(nquads=nquads, findings=tuple(findings))


def read_document(context: Context) -> None:
    """A document of the crawl in one of these syntaxes."""
    kind = _KINDS[context.document.kind]
    found = read(
        context.body,
        kind=kind,
        url=context.url,
        limit=context.settings.limits.quads_per_page,
        characters=sink_limits(context.settings.limits, len(context.body)).characters,
    )
    if kind in _WITHOUT_GRAPHS:
        context.sink.pour_triples(found.nquads)
    else:
        context.sink.pour(found.nquads)
    context.findings += found.findings


class _Full(Exception):
    pass


class _Written:
    """What the serializer writes, up to a limit: a prefix of 1 MB that is used 10,000 times would be 10 GB.

    The parser gives blank nodes random labels of varying length. So the limit is applied to the lines with their final
    labels; until then there is room for half as much again, since a random label has at most 34 characters and a final
    one has 26."""

    def __init__(self, characters: int) -> None:
        self._parts: list[bytes] = []
        self._characters = characters
        self._room = characters + characters // 2
        self.full = False

    def write(self, data: bytes) -> int:
        self._room -= len(data)
        if self._room < 0:
            self.full = True
            raise _Full
        self._parts.append(bytes(data))
        return len(data)

    def flush(self) -> None:
        """Nothing is buffered."""

    def lines(self, labels: str) -> bytes:
        """All that is complete and within the limit."""
        text = b"".join(self._parts)
        if b"_:" in text:
            text = _numbered(text, labels)
        if self.full or len(text) > self._characters:
            self.full = True
            text = text[: text.rfind(b"\n", 0, self._characters) + 1]
        return text


def _numbered(nquads: bytes, prefix: str) -> bytes:
    """The lines with blank nodes numbered in the order in which they appear."""
    parts = _BLANK.split(nquads)
    labels = {label: b"_:%s%08x" % (prefix.encode(), number) for number, label in enumerate(dict.fromkeys(parts[1::2]))}
    parts[1::2] = map(labels.__getitem__, parts[1::2])
    return b"".join(parts)


def _until_defect(parser: ox.QuadParser, defects: list[SyntaxInvalid], *, goes_on: bool) -> Iterator[ox.Quad]:
    """Statements until the first defect, or, line by line, until there were too many."""
    while True:
        try:
            yield from parser
        except SyntaxError as error:
            defects.append(_invalid(error))
            if goes_on and len(defects) < _MAX_DEFECTS:
                continue
        return


def _serialized(statements: Iterable[ox.Quad]) -> bytes:
    return ox.serialize(statements, format=ox.RdfFormat.N_QUADS) or b""


def _prepared(body: bytes, kind: RdfKind) -> bytes:
    if kind != "rdfxml":
        body = body.removeprefix(codecs.BOM_UTF8)
        check_triple_terms(body)
        return body
    body = _utf8(body)
    check_xml(body)
    return with_canonical_literals(body)


def _utf8(body: bytes) -> bytes:
    """XML in UTF-8. The native parser reads nothing else, and the guards look at bytes."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    else:
        declared = _DECLARATION.match(body, 3 if body.startswith(codecs.BOM_UTF8) else 0)
        if declared is None or declared.group(1).lower() in (b"utf-8", b"utf8"):
            return body
        encoding = declared.group(1).decode()
    try:
        text = body.decode(encoding).encode()
    except (LookupError, UnicodeError) as error:
        raise SyntaxInvalid(f"cannot be decoded: {error}", code="encoding") from None
    declared = _DECLARATION.match(text)
    if declared is None:
        return text
    return text[: declared.start(1)] + b"UTF-8" + text[declared.end(1) :]


def _invalid(error: SyntaxError) -> SyntaxInvalid:
    message = re.sub(r"^Parser error at line [^:]*: ", "", str(error.msg))
    return SyntaxInvalid(message, code="syntax", line=error.lineno or 0, column=error.offset or 0)


def _finding(error: SyntaxInvalid, kind: RdfKind) -> Finding:
    return Finding(
        code=f"rdf-{error.code}",
        message=error.message,
        severity="error",
        line=error.line,
        column=error.column,
        advice="statements before this place were kept" if error.line else "",
        syntax=kind,
    )


_PARSE_TYPE = f"{{{RDF}}}parseType"
_MAY_STAND_BESIDE = (f"{{{RDF}}}ID", f"{{{RDF}}}version")
_XML = "{http://www.w3.org/XML/1998/namespace}"
_NOT_LITERAL = ("Resource", "Collection", "Triple")  # any other word means Literal (RDF/XML, 7.2.20)


def with_canonical_literals(body: bytes) -> bytes:
    """`body` with its XML literals spelled out; unchanged if it has none or is not well-formed XML."""
    if b"parseType" not in body:
        return body
    # `check_xml` has limited the entities; nothing external is ever loaded.
    parser = etree.XMLParser(resolve_entities=True, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(body, parser)
    except etree.XMLSyntaxError:
        return body  # the RDF parser says what is wrong, and where
    changed = False
    for element in list(root.iter(etree.Element)):
        kind = element.get(_PARSE_TYPE)
        if kind is not None and kind not in _NOT_LITERAL:
            others = [name for name in element.attrib if name != _PARSE_TYPE and not str(name).startswith(_XML)]
            if all(name in _MAY_STAND_BESIDE for name in others):
                try:
                    _spell_out(element)
                except etree.C14NError:
                    return body  # a namespace without a scheme has no canonical form; the RDF parser's own will do
                changed = True
    return etree.tostring(root.getroottree(), encoding="UTF-8", xml_declaration=False) if changed else body


def _spell_out(element: etree._Element) -> None:
    parts = [_escape(element.text)]
    for child in list(element):
        tail = child.tail
        child.tail = None
        parts.append(_canonical(child))
        parts.append(_escape(tail))
        element.remove(child)
    del element.attrib[_PARSE_TYPE]
    element.set(f"{{{RDF}}}datatype", f"{RDF}XMLLiteral")
    element.text = "".join(parts)


def _canonical(node: etree._Element) -> str:
    # lxml 6 crashes the process when asked for the canonical form of a comment or instruction alone.
    if isinstance(node, etree._Comment):
        comment = str(node.text or "")
        return f"<!--{comment}-->"
    if isinstance(node, etree._ProcessingInstruction):
        target, data = str(node.target), str(node.text or "")
        return f"<?{target} {data}?>" if data else f"<?{target}?>"
    return etree.tostring(node, method="c14n", exclusive=True, with_comments=True).decode()


def _escape(text: str | None) -> str:
    """Character data in canonical XML."""
    return (text or "").replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
