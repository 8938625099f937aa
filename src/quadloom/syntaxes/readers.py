"""How each syntax reads a `Context`: the few lines between the shared tree and an extractor."""

from __future__ import annotations

from functools import lru_cache

from quadloom.errors import QuadloomError
from quadloom.syntaxes.jsonld import extraction as jsonld
from quadloom.syntaxes.jsonld.json import is_jsonld_type
from quadloom.syntaxes.jsonld.loader import ContextLoader, with_folder
from quadloom.syntaxes.microdata import extraction as microdata
from quadloom.syntaxes.microformats import extraction as microformats
from quadloom.syntaxes.rdf import files as rdf_files
from quadloom.syntaxes.rdf.files import RdfKind
from quadloom.syntaxes.rdfa import annotate, annotate_xml
from quadloom.syntaxes.rdfa.hosts import HostName
from quadloom.syntaxes.rdfa.trees import HINTS
from quadloom.syntaxes.registry import Context, Loader

_RDFA_HOSTS: dict[str, HostName] = {"xhtml": "xhtml5", "svg": "svg"}


def read_rdfa(context: Context) -> None:
    """RDFa 1.1 of an HTML page."""
    language = _transport_language(context)
    hints = {name for name, pattern in HINTS.items() if pattern in context.signs}
    complete = annotate(
        context.tree, context.url, context.sink, base=context.base, language=language, hints=hints,
        vocabularies=_vocabularies(context),
    )  # fmt: skip
    _say_if_cut(context, complete)


def read_rdfa_xml(context: Context) -> None:
    """RDFa 1.1 of XHTML, SVG and other XML."""
    host: HostName = _RDFA_HOSTS.get(context.document.kind, "xml")
    complete = annotate_xml(
        context.root, context.url, context.sink, host=host, language=_transport_language(context),
        vocabularies=_vocabularies(context),
    )  # fmt: skip
    _say_if_cut(context, complete)


def read_microdata(context: Context) -> None:
    context.findings += microdata.write(context.tree, context.sink, base=context.base)


def read_microformats(context: Context) -> None:
    roots = microformats.roots_in(context.utf8)
    if roots:
        context.findings += microformats.write(context.tree, context.sink, base=context.base, roots=roots)


def read_jsonld_scripts(context: Context) -> None:
    """JSON-LD in the scripts of a page, each a document of its own."""
    nodes = [node for node in context.elements("script") if is_jsonld_type(node.attributes.get("type") or "")]
    if not nodes:
        return
    lines: list[int] = []

    def line_of(number: int) -> int:
        # Looking for the scripts in the source costs as much as reading them (70 µs), and few pages have a defect.
        if not lines:
            lines.extend(_script_lines(context, len(nodes)))
        return lines[number]

    texts = [node.text() for node in nodes]
    loader = _context_loader(context)
    context.findings += jsonld.annotate_scripts(texts, context.base, context.sink, line_of=line_of, loader=loader)


def _script_lines(context: Context, count: int) -> list[int]:
    """Lines of the page where its `count` JSON-LD scripts begin; 0 where the source is not so clear."""
    offsets = context.positions.scripts("application/ld+json")
    return [context.positions.at(offset)[0] for offset in offsets] if len(offsets) == count else [0] * count


def read_jsonld(context: Context) -> None:
    """A JSON-LD document."""
    loader = _context_loader(context)
    context.findings += jsonld.annotate_scripts(
        [context.text], context.base, context.sink, line_of=lambda _number: 1, loader=loader
    )


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


def _context_loader(context: Context) -> ContextLoader | None:
    transform, limits = context.settings.transform, context.settings.limits
    fetch = with_folder(transform.contexts_folder, None if transform.contexts == "known" else context.loader)
    return _bounded(fetch, limits.context_loads, limits.context_bytes) if fetch is not None else None


@lru_cache(maxsize=4)
def _bounded(fetch: Loader, loads: int, max_bytes: int) -> ContextLoader:
    """One loader per way of fetching, so that its cache serves all pages of a worker."""
    return ContextLoader(fetch, loads=loads, max_bytes=max_bytes)


def _vocabularies(context: Context) -> Loader | None:
    """How the vocabularies of RDFa are loaded where the settings want their entailments; a finding tells of trouble."""
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


def _say_if_cut(context: Context, complete: bool) -> None:
    if not complete:
        context.find("rdfa-limit", "RDFa beyond the limits of one page was left out", syntax="rdfa")
