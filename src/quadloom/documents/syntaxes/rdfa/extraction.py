"""From bytes or a parsed tree to statements: the public face of RDFa.

XML is parsed here for `extract`, hardened and tolerant of HTML's named characters: no network, no DTD, and no entity of
the document's own is expanded in text (libxml2 limits those in attributes). XHTML pages write `&nbsp;` without its
definition, so HTML's names become character references before parsing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html.entities import name2codepoint

import pyoxigraph
from lxml import etree
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html import elements as html_elements
from quadloom.documents.syntaxes.html.elements import Elements
from quadloom.documents.syntaxes.html.tree import source_of
from quadloom.documents.syntaxes.iri import BaseIri
from quadloom.documents.syntaxes.rdfa.expansion import Loader, expand_vocabularies, fold_patterns
from quadloom.documents.syntaxes.rdfa.frames import DOCUMENT_ERROR, ProcessorGraph, Report, Triple
from quadloom.documents.syntaxes.rdfa.hosts import HOSTS, XHTML, HostLanguage, HostName, Version
from quadloom.documents.syntaxes.rdfa.names import Names, Names10
from quadloom.documents.syntaxes.rdfa.processing import USES_VOCABULARY, Markup, N, Processor
from quadloom.documents.syntaxes.rdfa.processing_1_0 import Processor10
from quadloom.documents.syntaxes.rdfa.trees import (
    XML_NAMESPACE,
    LexborMarkup,
    LxmlMarkup,
    sparse,
    walk,
    walk_elements,
)
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.signs import signs_in
from quadloom.documents.syntaxes.sink import Sink
from quadloom.errors import QuadloomError

# Without one of these no XML states anything: attributes that make statements, RDF/XML, entities that could hide both.
_XML_SIGNS = (rb"""[\s"'/:](?:property|typeof|vocab|rel|rev)\s*=|/22-rdf-syntax-ns#|<!ENTITY""",)
_HOST_OF_KIND: dict[str, HostName] = {"xhtml": "xhtml5", "svg": "svg"}


def extract(
    body: bytes,
    *,
    url: str,
    host: HostName = "html5",
    version: Version = "1.1",
    vocab_expansion: bool = False,
    processor_graph: bool = False,
    loader: Loader | None = None,
) -> bytes:
    """N-Quads of a document; with `processor_graph`, the processor's messages about it instead.

    `loader` returns the bytes of a vocabulary for `vocab_expansion`; without one nothing is loaded.
    """
    graph = ProcessorGraph(url)
    report = graph.report if processor_graph else None
    sink = Sink()
    rules = HOSTS[host]
    if rules.html_parser:
        triples = _html_triples(source_of(body), url, sink, rules, version, report)
    else:
        triples = _xml_triples(body, url, sink, rules, version, report)
    if vocab_expansion and version == "1.1":
        triples = _expanded(triples, loader, graph.report)
    if processor_graph:
        sink = Sink()
        graph.write(sink)
    else:
        _pour(triples, sink)
    return sink.nquads()


def read(context: Context) -> None:
    """RDFa 1.1 of an HTML page."""
    complete = write(
        context.all_elements,
        context.url,
        context.sink,
        base=context.base,
        language=_transport_language(context),
        vocabularies=_vocabulary_loader(context),
    )
    _report_limit(context, complete)


def read_xml(context: Context) -> None:
    """RDFa 1.1 of XHTML, SVG and other XML."""
    root = context.root
    if context.document.kind == "xml" and not signs_in(context.utf8, _XML_SIGNS):
        return
    complete = write_xml(
        root,
        context.url,
        context.sink,
        host=_HOST_OF_KIND.get(context.document.kind, "xml"),
        language=_transport_language(context),
        vocabularies=_vocabulary_loader(context),
    )
    _report_limit(context, complete)


def write(
    elements: Elements,
    url: str,
    sink: Sink,
    *,
    base: str = "",
    language: str = "",
    roles: bool = False,
    report: Report | None = None,
    vocabularies: Loader | None = None,
) -> bool:
    """Adds the RDFa 1.1 of an HTML page that is already parsed; False = a limit cut it short.

    `vocabularies` loads those in use, whose entailments are added then; failures go to `report`.
    `base` is the page's base if the caller knows it; `language` that of the transport (Content-Language). Roles are
    off because on the web they are hints for assistive technology, one for every tenth element. Cost: nothing
    on a page without RDFa, else in proportion to the annotated elements and their ancestors.
    """
    numbers = sparse(elements, roles=roles)
    if not numbers:
        return True
    host = HOSTS["html5"]
    document = BaseIri.of_attribute(url)
    base = base or _html_base(elements, url)
    names_base = document if base == url else BaseIri.of_attribute(base)
    processor = _processor(host, LexborMarkup(elements), document, names_base, sink, "1.1", report, language, roles)
    walk_elements(elements, numbers, processor)
    processor.finish()
    _pour(_expanded(fold_patterns(processor.triples.found), vocabularies, report), sink)
    return not processor.triples.full


def write_xml(
    root: etree._Element,
    url: str,
    sink: Sink,
    *,
    host: HostName = "xml",
    version: Version = "1.1",
    language: str = "",
    roles: bool = False,
    report: Report | None = None,
    vocabularies: Loader | None = None,
) -> bool:
    """As `write`, for an XML tree; SVG and XML may hold RDF/XML blocks, which are added too."""
    rules = HOSTS[host]
    triples, complete = _walked(root, url, sink, rules, version, report, language, roles)
    _pour(_expanded(triples, vocabularies, report), sink)
    return complete


def _vocabulary_loader(context: Context) -> Loader | None:
    """Loads RDFa vocabularies if the settings want their entailments; a failure becomes a finding."""
    fetch = context.loader
    if fetch is None or not context.settings.transform.vocabulary_expansion:
        return None

    def load(url: str) -> bytes:
        try:
            return fetch(url)
        except (OSError, ValueError, LookupError, QuadloomError) as error:
            context.find("rdfa-vocabulary", f"the vocabulary {url} cannot be read: {error}", syntax="rdfa")
            raise

    return load


def _transport_language(context: Context) -> str:
    return next((value for name, value in context.headers if name == "content-language"), "").partition(",")[0].strip()


def _report_limit(context: Context, complete: bool) -> None:
    if not complete:
        context.find("rdfa-limit", "RDFa beyond the limits of one page was left out", syntax="rdfa")


def _expanded(triples: list[Triple], loader: Loader | None, report: Report | None) -> list[Triple]:
    if loader is None:
        return triples
    used = [value[1:-1] for _, predicate, value in triples if predicate == USES_VOCABULARY]
    return expand_vocabularies(triples, used, loader, _read_vocabulary, report or _silent)


def _silent(_kind: str, _text: str) -> None:
    """The report of callers that ignore vocabularies which cannot be read."""


def _html_triples(
    source: bytes, url: str, sink: Sink, host: HostLanguage, version: Version, report: Report | None
) -> list[Triple]:
    elements = html_elements.elements_of(LexborHTMLParser(source))
    base = BaseIri.of_attribute(_html_base(elements, url))
    markup = LexborMarkup(elements)
    processor = _processor(host, markup, BaseIri.of_attribute(url), base, sink, version, report, "", True)
    # Warnings are about every element, and RDFa 1.0 has other makers of statements: both see the whole tree.
    everything = report is not None or version == "1.0"
    walk_elements(elements, range(len(elements)) if everything else sparse(elements, roles=True), processor)
    processor.finish()
    found = processor.triples.found
    return fold_patterns(found) if host.copies_patterns and version == "1.1" else found


def _xml_triples(
    body: bytes, url: str, sink: Sink, host: HostLanguage, version: Version, report: Report | None
) -> list[Triple]:
    root, problem = parse_xml(body)
    if problem and report:
        report(DOCUMENT_ERROR, problem)
    if root is None:
        return []
    return _walked(root, url, sink, host, version, report, "", True)[0]


def _walked(
    root: etree._Element,
    url: str,
    sink: Sink,
    host: HostLanguage,
    version: Version,
    report: Report | None,
    language: str,
    roles: bool,
) -> tuple[list[Triple], bool]:
    base = BaseIri.of_attribute(_xml_base(root, url, host, version))
    markup = LxmlMarkup(XHTML if version == "1.0" or host.base_element else "")
    processor = _processor(host, markup, BaseIri.of_attribute(url), base, sink, version, report, language, roles)
    embedded: list[Triple] = []

    def read(block: etree._Element) -> None:
        embedded.extend(_embedded_rdf(block, base.iri, sink, report))

    walk(root, processor, read if host.embedded_rdf else None)
    processor.finish()
    found = processor.triples.found + embedded
    if host.copies_patterns and version == "1.1":
        found = fold_patterns(found)
    return found, not processor.triples.full


def _processor(
    host: HostLanguage,
    markup: Markup[N],
    document: BaseIri,
    base: BaseIri,
    sink: Sink,
    version: Version,
    report: Report | None,
    language: str,
    roles: bool,
) -> Processor[N]:
    if version == "1.0":
        names: Names = Names10(document, host.terms, sink.blank, report, fold_case=host.html_parser)
        return Processor10(host, markup, names, base, sink.blank, language=language, roles=roles)
    names = Names(document, host.terms, sink.blank, report)
    return Processor(host, markup, names, base, sink.blank, language=language, roles=roles)


def _pour(triples: list[Triple], sink: Sink) -> None:
    for subject, predicate, value in triples:
        sink.add(subject, predicate, value)


def _html_base(elements: Elements, url: str) -> str:
    for (href,) in elements.values(elements.named("base"), ("href",)):
        if href is not None:
            return BaseIri.of_attribute(url).moved(href).iri if href else url
    return url


def _xml_base(root: etree._Element, url: str, host: HostLanguage, version: Version) -> str:
    """The base of the whole document. RDFa 1.0 knows XHTML alone, so that its base element counts in every host."""
    if host.base_element or version == "1.0":
        for element in root.iter(f"{{{XHTML}}}base", "base"):
            href = element.get("href")
            if href:
                return BaseIri.of_attribute(url).moved(href).iri
    own = root.get(f"{{{XML_NAMESPACE}}}base") if host.xml_base else None
    return BaseIri.of_attribute(url).moved(own).iri if own else url


def _read_vocabulary(body: bytes, document: str) -> bytes:
    return extract(body, url=document)


def _embedded_rdf(block: etree._Element, base: str, sink: Sink, report: Report | None) -> list[Triple]:
    """The statements of an RDF/XML block; a broken block is reported and gives none."""
    blanks: dict[str, str] = {}
    text = etree.tostring(block, encoding="utf-8", with_tail=False)
    own_base = block.base or base
    try:
        quads = list(pyoxigraph.parse(text, pyoxigraph.RdfFormat.RDF_XML, base_iri=own_base))
    except (SyntaxError, ValueError) as problem:
        if report:
            report(DOCUMENT_ERROR, f"The RDF/XML block cannot be read: {problem}")
        return []
    return [
        (
            _relabelled(quad.subject, blanks, sink.blank),
            str(quad.predicate),
            _relabelled(quad.object, blanks, sink.blank),
        )
        for quad in quads
    ]


def _relabelled(term: object, blanks: dict[str, str], new_blank: Callable[[], str]) -> str:
    if not isinstance(term, pyoxigraph.BlankNode):
        return str(term)
    if term.value not in blanks:
        blanks[term.value] = new_blank()
    return blanks[term.value]


_NAMED = re.compile(rb"&([A-Za-z][A-Za-z0-9]{1,31});")
_KEPT = frozenset({b"amp", b"lt", b"gt", b"quot", b"apos"})


def parse_xml(body: bytes) -> tuple[etree._Element | None, str]:
    """The root and what is wrong with the document ("" = well-formed). A broken one is read as far as possible."""
    body = _with_character_references(body)
    problem = ""
    try:
        root = etree.fromstring(body, _parser(recover=False))
    except etree.XMLSyntaxError as error:
        problem = str(error)
        try:
            root = etree.fromstring(body, _parser(recover=True))
        except etree.XMLSyntaxError:
            return None, problem
    if root is not None and root.getroottree().docinfo.internalDTD is not None:
        etree.strip_tags(root, etree.Entity)
    return root, problem


def _parser(*, recover: bool) -> etree.XMLParser:
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        recover=recover,
        remove_pis=False,
    )


def _with_character_references(body: bytes) -> bytes:
    """HTML's named characters as numbers, outside of CDATA sections."""
    if b"&" not in body:
        return body
    written: list[bytes] = []
    place = 0
    while True:
        start = body.find(b"<![CDATA[", place)
        end = body.find(b"]]>", start) if start >= 0 else -1
        if end < 0:
            written.append(_NAMED.sub(_numbered, body[place:]))
            return b"".join(written)
        written.append(_NAMED.sub(_numbered, body[place:start]))
        written.append(body[start:end])
        place = end


def _numbered(match: re.Match[bytes]) -> bytes:
    name = match[1]
    code = None if name in _KEPT else name2codepoint.get(name.decode("ascii"))
    return match[0] if code is None else b"&#%d;" % code
