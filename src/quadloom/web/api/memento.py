"""Memento (RFC 7089): all visits of a page, the one nearest to a date, and the page as it was archived then.

An archived body is served in a sandbox: its scripts do not run, and it loads nothing from anywhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime
from http import HTTPStatus

import msgspec
from starlette.responses import RedirectResponse, Response

from quadloom.asking.urls import page_of
from quadloom.errors import StoreError
from quadloom.model.outcome import READ_OUTCOMES, ArchiveRef, Outcome
from quadloom.model.page import Page
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest

LINK_FORMAT = "application/link-format"
_SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_MEDIA_TYPE = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+(; ?charset=[a-z0-9_.:-]+)?", re.IGNORECASE)
_STAMP = "%Y%m%d%H%M%S"


class Memento(msgspec.Struct, frozen=True, order=True):
    """A visit, and the record that was current at it: an older one if nothing had changed."""

    at: int
    file: str
    offset: int
    length: int

    @property
    def stamp(self) -> str:
        return datetime.fromtimestamp(self.at, UTC).strftime(_STAMP)

    @property
    def date(self) -> str:
        return format_datetime(datetime.fromtimestamp(self.at, UTC), usegmt=True)


class _Resource:
    """A page and its visits, with the addresses of the protocol."""

    def __init__(self, request: WebRequest, prefix: str) -> None:
        self.url = _original(request, prefix)
        public = request.site.settings.web.public_url.rstrip("/")
        self._base = public or str(request.http.url.replace(path="", query=""))
        row = page_of(request.warehouse.stores.catalog, self.url)
        self.mementos: list[Memento] = []
        current: ArchiveRef | None = None
        for visit in reversed(request.warehouse.stores.catalog.visits.of(row.fingerprint) if row else []):
            # A changed version without a record must not be archived: an older one would pass for it.
            current = visit.archive or (current if visit.outcome == Outcome.UNCHANGED else None)
            if current is not None and visit.outcome in READ_OUTCOMES:
                self.mementos.append(Memento(int(visit.fetched_at), current.file, current.offset, current.length))
        if not self.mementos:
            raise HttpError(404, f"no version of {self.url[:500]} is archived", hint="/search lists the pages")
        self.mementos.sort()

    def nearest(self, at: float) -> Memento:
        place = bisect_left(self.mementos, at, key=lambda one: one.at)
        return min(self.mementos[max(0, place - 1) : place + 1], key=lambda one: abs(one.at - at))

    def address(self, memento: Memento) -> str:
        return f"{self._base}/memento/{memento.stamp}/{self.url}"

    def links(self, *, all_of_them: bool = False, among: tuple[Memento, ...] = ()) -> list[str]:
        first, last = self.mementos[0], self.mementos[-1]
        span = f'; from="{first.date}"; until="{last.date}"'
        found = [
            f'<{self.url}>; rel="original"',
            f'<{self._base}/timegate/{self.url}>; rel="timegate"',
            f'<{self._base}/timemap/link/{self.url}>; rel="{"self" if all_of_them else "timemap"}"; '
            f'type="{LINK_FORMAT}"{span}',
        ]
        for one in self.mementos if all_of_them else dict.fromkeys((first, *among, last)):
            place = " ".join(name for name, end in (("first", first), ("last", last)) if one is end)
            relation = f"{place} memento".strip()
            found.append(f'<{self.address(one)}>; rel="{relation}"; datetime="{one.date}"')
        return found


def time_map(request: WebRequest) -> Response:
    found = _Resource(request, "/timemap/link/")
    return Response(",\n".join(found.links(all_of_them=True)) + "\n", media_type=LINK_FORMAT)


def time_gate(request: WebRequest) -> Response:
    """A redirect to the visit nearest to `Accept-Datetime`; without it, to the newest."""
    found = _Resource(request, "/timegate/")
    chosen = found.mementos[-1]
    if wanted := request.http.headers.get("accept-datetime", ""):
        try:
            chosen = found.nearest(parsedate_to_datetime(wanted).timestamp())
        except (ValueError, TypeError, OverflowError):
            hint = "example: Accept-Datetime: Sat, 31 Jan 2026 12:00:00 GMT"
            raise HttpError(400, f"not a date: {wanted[:100]!r}", hint=hint) from None
    headers = {"Vary": "accept-datetime", "Link": ", ".join(found.links(among=(chosen,)))}
    return RedirectResponse(found.address(chosen), HTTPStatus.FOUND, headers)


def memento(request: WebRequest) -> Response:
    """The page as archived. A time between two visits leads to the nearest one."""
    stamp = request.path("stamp")
    found = _Resource(request, f"/memento/{stamp}/")
    try:
        at = datetime.strptime(stamp, _STAMP).replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise HttpError(400, f"not a time: {stamp[:50]!r}", hint="write it as 20260131235958") from None
    chosen = found.nearest(at)
    if chosen.at != at:
        return RedirectResponse(found.address(chosen), HTTPStatus.FOUND)
    page = request.warehouse.stores.archive.get(ArchiveRef(chosen.file, chosen.offset, chosen.length))
    if not isinstance(page, Page):
        raise StoreError("that visit received no page", hint="the time map lists the others")
    sent = page.header("content-type").strip()
    return Response(
        page.body,
        headers={
            "Content-Type": sent if _MEDIA_TYPE.fullmatch(sent) else "application/octet-stream",
            "Content-Security-Policy": _SANDBOX,
            "Memento-Datetime": chosen.date,
            "Link": ", ".join(found.links(among=(chosen,))),
        },
    )


def _original(request: WebRequest, prefix: str) -> str:
    """The address after the prefix, byte for byte as it was sent: its query is that of the request."""
    raw = request.http.scope.get("raw_path") or request.http.url.path.encode()
    text = raw.decode("ascii", "replace").partition("?")[0].removeprefix(prefix)
    query = request.http.url.query
    url = re.sub(r"^(https?):/+", r"\1://", text + (f"?{query}" if query else ""))
    if not url.startswith(("http://", "https://")) or not url.isascii() or re.search(r'[\s<>"]', url):
        raise HttpError(400, f"not an address of a page: {url[:200]!r}", hint="write /timegate/https://example.org/")
    return url
