"""`/schema`: the types of the warehouse or of one site as boxes, properties between them as lines; also as SVG."""

from __future__ import annotations

from urllib.parse import urlencode

from markupsafe import Markup
from starlette.responses import Response

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.schema import PAGES, SchemaPicture, schema_of
from quadloom.model.url import belongs_to
from quadloom.web.pages.entity import PICTURE_POLICY
from quadloom.web.pages.things.types import tables_of
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.view.pictures import schema_network, standalone

_MAX_HOSTS = 100_000


def schema_page(request: WebRequest) -> ViewResponse:
    picture = _picture(request)
    extra: dict[str, object] = {"drawn": Markup(_drawn(request, picture)), "site": request.text("site").strip()}
    return ViewResponse("schema.html", picture, extra)


def schema_svg(request: WebRequest) -> Response:
    svg = standalone(_drawn(request, _picture(request)))
    return Response(svg, media_type="image/svg+xml", headers={"Content-Security-Policy": PICTURE_POLICY})


def _picture(request: WebRequest) -> SchemaPicture:
    site = request.text("site").strip()
    return request.site.things.get(("schema", site), lambda: _counted(request, site))


def _counted(request: WebRequest, site: str) -> SchemaPicture:
    stores = request.warehouse.stores
    if not site:
        return schema_of(stores.quads, stores.catalog.scan(limit=PAGES + 1), tables_of(request).types().things)
    hosts = [row.host for row in stores.frontier.hosts.rows(limit=_MAX_HOSTS) if belongs_to(row.host, (site,))]
    if not hosts:
        raise HttpError(404, f"the site {site[:100]} is not known", hint="/sites lists all known hosts")
    each = max(20, PAGES // len(hosts) + 1)
    pages = [page for host in hosts[:50] for page in stores.catalog.scan(limit=each, host=host)]
    return schema_of(stores.quads, pages, {})


def _drawn(request: WebRequest, picture: SchemaPicture) -> str:
    """A table has the things of all sites, so the picture of one site has no numbers."""
    whole = not request.text("site").strip()
    return schema_network(picture, lambda found: "/type?" + urlencode({"iri": shorten(found.iri)}), numbers=whole)
