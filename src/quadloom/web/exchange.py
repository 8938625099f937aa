"""`/export.*`, the whole warehouse as one stream, and `/.well-known/void`, what is in it.

A dump comes from one read-only view, so it is consistent while a crawl writes. Graphs are converted block by block,
each holding whole graphs, hence TriG, Turtle and JSON-LD stream as well as N-Quads.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

from isal import igzip
from starlette.responses import Response, StreamingResponse

from quadloom.asking.result_formats import GRAPH_MEDIA
from quadloom.model.url import host_of, site_of
from quadloom.stores.oxigraph_quads import OxigraphQuads
from quadloom.stores.protocols import QuadStore
from quadloom.web.asks import Ask
from quadloom.web.rdf_answers import convert, negotiated_graph
from quadloom.web.refusals import Refused
from quadloom.web.usage import usage

_NAMES = {"nq": "nq", "trig": "trig", "ttl": "turtle", "nt": "nt", "jsonld": "jsonld"}
_MEDIA = {**{name: GRAPH_MEDIA[format] for name, format in _NAMES.items()}, "nq.gz": "application/gzip"}
PRODUCES = tuple(media.partition(";")[0] for media in _MEDIA.values())
_BLOCK = 1 << 20
_INPUT = "application/n-quads"


def export(ask: Ask) -> Response:
    name = ask.path("format")
    if name not in _MEDIA:
        hint = f"formats: {', '.join(_MEDIA)}; `quadloom export` knows more"
        raise Refused(404, f"there is no export as {name[:30]}", hint=hint)
    blocks = _blocks(OxigraphQuads.read_only(ask.desk.path / "quads"), ask.text("site"))
    chunks = _converted(blocks, name)
    return StreamingResponse(
        _steps(chunks),
        media_type=_MEDIA[name],
        headers={"Content-Disposition": f'attachment; filename="quadloom.{name}"', "Cache-Control": "no-store"},
    )


def _blocks(quads: QuadStore, site: str) -> Iterator[bytes]:
    """N-Quads of whole graphs, about a megabyte at a time."""
    if not site:
        yield from quads.dump()
        return
    parts: list[bytes] = []
    size = 0
    for graph in quads.graphs():
        if site_of(host_of(graph)) == site:
            parts.append(quads.graph(graph))
            size += len(parts[-1])
        if size >= _BLOCK:
            yield b"".join(parts)
            parts, size = [], 0
    if parts:
        yield b"".join(parts)


def _converted(blocks: Iterator[bytes], name: str) -> Iterator[bytes]:
    if name == "nq":
        yield from blocks
    elif name == "nq.gz":
        yield from (igzip.compress(block, 1) for block in blocks)  # members may follow each other in one file
    elif name == "jsonld":
        yield from _json_arrays(convert(block, _INPUT, "jsonld") for block in blocks)
    else:
        yield from (convert(block, _INPUT, _NAMES[name]) for block in blocks)


def _json_arrays(documents: Iterator[bytes]) -> Iterator[bytes]:
    """Expanded JSON-LD is an array of nodes, so several documents join into one."""
    yield b"["
    for number, document in enumerate(documents):
        yield (b",\n" if number else b"\n") + document.strip().removeprefix(b"[").removesuffix(b"]")
    yield b"\n]\n"


async def _steps(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    while chunk := await loop.run_in_executor(None, next, chunks, b""):
        yield chunk


def void(ask: Ask) -> Response:
    """VoID with class and property partitions by their measured use."""
    base = str(ask.request.url.replace(path="/", query="", fragment=""))
    figures = usage(ask.desk)
    quads, pages = ask.desk.reader.look(lambda warehouse: (len(warehouse.quads), len(warehouse.text)))
    parts = [f"[ void:class <{use.iri}> ; void:entities {use.count} ]" for use in figures.classes]
    properties = [f"[ void:property <{use.iri}> ; void:triples {use.count} ]" for use in figures.properties]
    turtle = f"""
    @prefix void: <http://rdfs.org/ns/void#> .
    @prefix dcterms: <http://purl.org/dc/terms/> .
    @prefix dcat: <http://www.w3.org/ns/dcat#> .
    <{base}#dataset> a void:Dataset, dcat:Dataset ;
      dcterms:title "What Quadloom read"@en ;
      void:sparqlEndpoint <{base}sparql> ;
      void:dataDump <{base}export.nq.gz> ;
      void:uriLookupEndpoint "{base}entity?iri=" ;
      void:triples {quads} ;
      void:documents {pages}"""
    if parts:
        turtle += f" ;\n      void:classPartition {', '.join(parts)}"
    if properties:
        turtle += f" ;\n      void:propertyPartition {', '.join(properties)}"
    return negotiated_graph(ask, (turtle + " .").encode(), "text/turtle")
