"""`/cite`: where a thing's values come from, for a bibliography."""

from __future__ import annotations

from starlette.responses import Response

from quadloom.asking.evidence.cite import FORMATS, cite
from quadloom.asking.sparql.prefixes import expand
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest
from quadloom.web.view.terms import is_iri

_MEDIA = {
    "text": "text/plain; charset=utf-8",
    "json": "application/json",
    "bibtex": "application/x-bibtex; charset=utf-8",
    "csl": "application/vnd.citationstyles.csl+json",
}
CHOICES = tuple(_MEDIA)
PRODUCES = tuple(media.partition(";")[0] for media in _MEDIA.values())


def citation(request: WebRequest) -> Response:
    name, iri = request.text("format", "text"), expand(request.required("iri", "http://schema.org/Person"))
    if name not in FORMATS:
        raise HttpError(400, f"unknown format {name[:50]!r}", hint=f"formats are {', '.join(CHOICES)}")
    if not is_iri(iri):
        raise HttpError(
            400, f"not an IRI: {iri[:200]}", hint="give an absolute IRI, or a short name such as schema:Event"
        )
    base = request.site.settings.web.public_url or str(request.http.url.replace(path="", query=""))
    found = cite(request.warehouse.stores, iri, request.text("property"), public_url=base)
    return Response(FORMATS[name](found), media_type=_MEDIA[name])
