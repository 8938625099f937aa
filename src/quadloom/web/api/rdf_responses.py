"""Graphs in the format that the client asked for: the one place that converts RDF into any RDF media type."""

from __future__ import annotations

import pyoxigraph as ox
from starlette.responses import Response

from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.result_formats import GRAPH_FORMATS, GRAPH_MEDIA
from quadloom.web.server.errors import HttpError
from quadloom.web.server.negotiation import choose
from quadloom.web.server.requests import WebRequest

# Media type → name of the format, in order of preference.
FORMATS = {
    "text/turtle": "turtle", "application/n-triples": "nt", "application/n-quads": "nq", "application/trig": "trig",
    "application/ld+json": "jsonld", "application/rdf+xml": "rdfxml",
}  # fmt: skip
RDF_TYPES = tuple(FORMATS)
_DATASETS = frozenset(("nq", "trig", "jsonld"))
_INPUTS = {"text/turtle": ox.RdfFormat.TURTLE, "application/n-quads": ox.RdfFormat.N_QUADS}


def chosen_format(request: WebRequest) -> str:
    """`format=` overrides Accept; 406 if neither names a known format."""
    wanted = request.text("format").lower()
    if wanted:
        wanted = {"ttl": "turtle"}.get(wanted, wanted)
        if wanted not in GRAPH_FORMATS:
            raise HttpError(406, f"there is no format {wanted[:30]}", hint=f"formats: {', '.join(GRAPH_FORMATS)}")
        return wanted
    media = choose(request.accept, RDF_TYPES)
    if media is None:
        raise HttpError(406, "none of the accepted media types is RDF", hint=f"accept one of {', '.join(RDF_TYPES)}")
    return FORMATS[media]


def negotiated_graph(request: WebRequest, data: bytes, media_type: str) -> Response:
    return graph_response(data, media_type, chosen_format(request))


def graph_response(data: bytes, media_type: str, format: str) -> Response:
    """Statements keep their graphs if the format can hold them."""
    body = convert(data, media_type, format)
    return Response(body, media_type=GRAPH_MEDIA[format], headers={"Vary": "Accept"})


def convert(data: bytes, media_type: str, format: str) -> bytes:
    prefixes = {name: space for name, space in PREFIXES.items() if space.encode() in data}
    quads = ox.parse(data, _INPUTS[media_type], lenient=True)
    if format in _DATASETS:
        found = ox.serialize(quads, format=GRAPH_FORMATS[format], prefixes=prefixes)
    else:
        triples = dict.fromkeys(quad.triple for quad in quads)
        found = ox.serialize(triples, format=GRAPH_FORMATS[format], prefixes=prefixes)
    assert found is not None, "serialize without an output returns bytes"
    return found
