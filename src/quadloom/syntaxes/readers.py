"""How each syntax reads a `Context`: the few lines between the shared tree and an extractor that knows nothing of it."""

from __future__ import annotations

from typing import Literal

from quadloom.syntaxes import microdata, microformats, rdf_files
from quadloom.syntaxes.rdf_files import RdfKind
from quadloom.syntaxes.rdfa import annotate, annotate_xml
from quadloom.syntaxes.registry import Context


_RDFA_HOSTS: dict[str, Literal["xhtml5", "svg"]] = {"xhtml": "xhtml5", "svg": "svg"}


def read_rdfa(context: Context) -> None:
    """RDFa 1.1 of an HTML page."""
    complete = annotate(context.tree, context.url, context.sink, base=context.base, language=_transport_language(context))
    _say_if_cut(context, complete)


def read_rdfa_xml(context: Context) -> None:
    """RDFa 1.1 of XHTML, SVG and other XML."""
    host = _RDFA_HOSTS.get(context.document.kind, "xml")
    complete = annotate_xml(context.root, context.url, context.sink, host=host, language=_transport_language(context))
    _say_if_cut(context, complete)


def read_microdata(context: Context) -> None:
    if microdata.might_contain(context.utf8):
        context.findings += microdata.write(context.tree, context.sink, base=context.base)


def read_microformats(context: Context) -> None:
    roots = microformats.roots_in(context.utf8)
    if roots:
        context.findings += microformats.write(context.tree, context.sink, base=context.base, roots=roots)


def read_rdf_file(context: Context) -> None:
    """Turtle, TriG, N-Triples, N-Quads, RDF/XML: what can be read up to the first defect."""
    kinds: dict[str, RdfKind] = {
        "turtle": "turtle", "trig": "trig", "ntriples": "ntriples", "nquads": "nquads", "rdfxml": "rdfxml",
    }  # fmt: skip
    found = rdf_files.read(
        context.body,
        kind=kinds[context.document.kind],
        url=context.url,
        limit=context.settings.limits.quads_per_page,
    )
    context.sink.pour(found.nquads)
    context.findings += found.findings


def _transport_language(context: Context) -> str:
    return next((value for name, value in context.headers if name == "content-language"), "").partition(",")[0].strip()


def _say_if_cut(context: Context, complete: bool) -> None:
    if not complete:
        context.find("rdfa-limit", "RDFa beyond the limits of one page was left out", syntax="rdfa")
