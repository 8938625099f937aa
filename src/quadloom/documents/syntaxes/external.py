"""What other programs state about a document: the body goes out to a service or a command, RDF or XML comes back.

The extractor of a service does not ask it. Asking takes long and needs the network, so it is done outside of the
workers (`quadloom.crawling.workers.services`): before any extractor runs, `transform` collects what is wanted and
raises
`ServicesNeeded`; the page is transformed again when the answers are there, and the extractor writes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import get_args

from lxml import etree

from quadloom.documents.syntaxes.rdf.files import RdfKind
from quadloom.documents.syntaxes.registry import Context, Extractor, Registry
from quadloom.documents.syntaxes.terms import RDF
from quadloom.documents.syntaxes.xml import generic as generic_xml
from quadloom.documents.syntaxes.xml import stylesheet_folder as xslt_folder
from quadloom.documents.syntaxes.xml import xslt
from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Document, Kind
from quadloom.model.service import ServiceReply, ServiceRequest
from quadloom.settings import ServiceSettings

MAX_ANSWER_BYTES = 32 * 1024 * 1024
SYNTAX = "external"
ACCEPT = (
    "application/n-quads, application/n-triples, text/turtle, application/trig, application/rdf+xml;q=0.9,"
    " application/ld+json;q=0.8, application/xml;q=0.5"
)
_RDF_TYPES: dict[str, RdfKind] = {
    "application/n-quads": "nquads", "application/n-triples": "ntriples", "text/turtle": "turtle",
    "application/trig": "trig", "application/rdf+xml": "rdfxml",
}  # fmt: skip


class ServicesNeeded(Exception):
    """The document cannot be transformed before these requests are answered."""

    def __init__(self, requests: tuple[ServiceRequest, ...]) -> None:
        super().__init__(f"{len(requests)} services are to be asked")
        self.requests = requests


def with_services(registry: Registry, services: Iterable[ServiceSettings]) -> Registry:
    """The registry with an extractor for each service, on the kinds or media types it takes (all, if none is given)."""
    kinds: tuple[Kind, ...] = get_args(Kind)
    for number, service in enumerate(services):
        types = frozenset(word.lower() for word in service.kinds if "/" in word)
        named = [kind for kind in kinds if kind in service.kinds]
        wanted = [kind for kind in kinds if kind != "empty"] if types or not service.kinds else named
        extractor = Extractor(SYNTAX, _reader(number), service=_wanting(number, frozenset(service.kinds), types))
        registry = registry.adding(extractor, wanted)
    return registry


def service_requests(context: Context, extractors: Iterable[Extractor]) -> tuple[ServiceRequest, ...]:
    """What services are to be asked about a document, by the extractors that read it."""
    media_type = context.document.media_type or "application/octet-stream"
    numbers = [extractor.service(context.document) for extractor in extractors if extractor.service is not None]
    return tuple(ServiceRequest(number, media_type, context.url) for number in numbers if number is not None)


def _wanting(number: int, kinds: frozenset[str], types: frozenset[str]) -> Callable[[Document], int | None]:
    def wanted(document: Document) -> int | None:
        is_wanted = not kinds or document.kind in kinds or document.media_type.lower() in types
        return number if is_wanted else None

    return wanted


def _reader(number: int) -> Callable[[Context], None]:
    def read(context: Context) -> None:
        answer = next((one for one in context.answers if one.service == number), None)
        if answer is None:
            return  # not one of the documents that it takes
        if answer.reply is None:
            raise SyntaxInvalid(f"the service gave no answer: {answer.reason}", code="service-failed")
        write_reply(context, answer.reply)

    return read


def write_reply(context: Context, reply: ServiceReply) -> None:
    """Write what a service answered: RDF in any syntax, or XML that goes through stylesheets."""
    if len(reply.body) > MAX_ANSWER_BYTES:
        raise SyntaxInvalid(f"the answer has more than {MAX_ANSWER_BYTES} bytes", code="service-answer-too-large")
    media_type = reply.content_type.partition(";")[0].strip().lower()
    kind = _RDF_TYPES.get(media_type)
    if reply.status == 204 or not reply.body.strip():
        return
    if kind is not None:
        xslt.state(context, reply.body, kind, base=context.base, syntax=SYNTAX)
    elif media_type in ("application/ld+json", "application/json"):
        _write_json_ld(context, reply.body)
    elif media_type == "text/html":
        _write_html(context, reply.body)
    elif media_type.endswith(("/xml", "+xml")):
        _write_xml(context, reply.body)
    else:
        raise SyntaxInvalid(
            f"the service answered {media_type or 'nothing known'}, not RDF, XML or HTML", code="service-type"
        )


def _write_json_ld(context: Context, body: bytes) -> None:
    from quadloom.documents.syntaxes import jsonld  # loaded only if a service answers in JSON-LD

    nquads = jsonld.extract(body, url=context.base, loader=context.loader)
    context.sink.pour(xslt.with_own_blank_nodes(nquads))


def _write_html(context: Context, body: bytes) -> None:
    """HTML of a service is for stylesheets, too."""
    inner = Context(body, Document("html", "text/html", "utf-8"), url=context.url, settings=context.settings)
    xslt_folder.read(inner)
    context.findings += inner.findings
    context.sink.pour(xslt.with_own_blank_nodes(inner.sink.nquads()))


def _write_xml(context: Context, body: bytes) -> None:
    """XML of a service is a document of its own: stylesheets of the user, then the generic mapping."""
    inner = Context(body, Document("xml", "application/xml", "utf-8"), url=context.url, settings=context.settings)
    name = str(inner.root.tag)
    if name == f"{{{RDF}}}RDF":
        xslt.state(context, etree.tostring(inner.root), "rdfxml", base=context.base, syntax=SYNTAX)
        return
    inner.document = Document("xml", "application/xml", "utf-8", root=name)
    xslt_folder.read(inner)
    generic_xml.read(inner)
    context.findings += inner.findings
    context.links += inner.links
    context.sink.pour(xslt.with_own_blank_nodes(inner.sink.nquads()))
