"""Short ways to make the records that contract tests need."""

from __future__ import annotations

from quadloom.model.link import Discovery
from quadloom.model.outcome import HostPace, Outcome, PageRow, Settlement
from quadloom.model.url import Url
from quadloom.model.visit import Visit


def found(href: str, *, depth: int = 1, priority: int = 3, score: float = 0.0, anchor: str = "") -> Discovery:
    url = Url.parse(href)
    return Discovery(url.href, url.key, url.host, url.fingerprint, depth, priority=priority, score=score, anchor=anchor)


def links(host: str, count: int, *, depth: int = 1) -> list[Discovery]:
    return [found(f"http://{host}/page/{number}", depth=depth) for number in range(count)]


def page_row(visit: Visit, outcome: Outcome = Outcome.NEW, **values: object) -> PageRow:
    fields: dict[str, object] = {
        "fingerprint": visit.fingerprint,
        "key": visit.key,
        "href": visit.href,
        "host": visit.host,
        "status": 200,
        "outcome": outcome,
        "kind": "html",
        "fetched_at": visit.not_before,
        "quads_digest": b"q",
        "text_digest": b"t",
    }
    return PageRow(**(fields | values))  # type: ignore[arg-type]


def settlement(
    visit: Visit,
    outcome: Outcome = Outcome.NEW,
    *,
    address: str = "",
    delay: float = 0.0,
    again_at: float | None = None,
    blocked_until: float = 0.0,
    cost: float = 1.0,
    discoveries: tuple[Discovery, ...] = (),
    asked: bool = True,
    etag: str = "",
) -> Settlement:
    pace = HostPace(visit.host, address, delay, 0.0, blocked_until, "told so" if blocked_until else "", cost)
    page = page_row(visit, outcome, etag=etag)
    return Settlement(visit, outcome, page, pace if asked else None, discoveries, again_at)
