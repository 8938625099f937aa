"""Everything about one document: how it was reached, what it is, what it says, what is wrong with it. Stores nothing.

The source may be a URL, a file or bytes. A URL is visited as the crawl would visit it, with robots.txt, redirects and
the guard. The transformation runs in a process of its own, so that a hostile file costs no more than its limits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from quadloom.crawling.inspect.child import InspectResult, InspectTask, InspectWorker
from quadloom.crawling.inspect.items import PREFIXES, InspectedItem, items_of
from quadloom.documents.syntaxes.charset import decode
from quadloom.errors import UsageError
from quadloom.fetching.fetcher import Fetcher, FetchResult
from quadloom.fetching.unit import open_fetcher
from quadloom.model.document import Transformed
from quadloom.model.finding import WEIGHT, Finding, FindingRecord, reported
from quadloom.model.link import Link
from quadloom.model.page import Failure, Hop, Page
from quadloom.model.url import Url, host_of, resolve
from quadloom.model.visit import Visit
from quadloom.settings import Settings

__all__ = ["PREFIXES", "InspectedItem", "Inspection", "inspect", "inspect_all"]

_DEFAULTS = Settings()
_MOST_SOURCE = 400_000  # bytes of a page whose source is shown
_NOWHERE = "urn:quadloom:input"  # the base of bytes that came without one


class Timings(msgspec.Struct, frozen=True):
    """Seconds: `fetch` on the wall clock, `transform` of CPU."""

    fetch: float = 0.0
    transform: float = 0.0


class Inspection(msgspec.Struct, frozen=True):
    """What was found out. `failure` says why there is no more; it is empty if all went well.

    `robots` is one of allowed, disallowed, unavailable, unknown, ignored, or `not asked` for a file or bytes.
    `nquads` are the statements that a crawl would store, in the graph of the page's URL, with the links that
    `index.links` asks for and blank nodes as they are. `features`: rich results that the page aims at, and whether it
    has all that they require. `source`: the text that lines and columns of the findings count in, if it is not long.
    `markdown`: the main part of a page.
    """

    url: str
    status: int = 0
    media_type: str = ""
    kind: str = ""
    charset: str = ""
    size: int = 0
    robots: str = "not asked"
    title: str = ""
    language: str = ""
    noindex: bool = False
    nofollow: bool = False
    reasons: tuple[str, ...] = ()
    items: tuple[InspectedItem, ...] = ()
    syntaxes: tuple[tuple[str, int], ...] = ()
    quads: int = 0
    nquads: bytes = b""
    links: tuple[Link, ...] = ()
    findings: tuple[FindingRecord, ...] = ()
    features: tuple[tuple[str, bool], ...] = ()
    source: str = ""
    hops: tuple[Hop, ...] = ()
    timings: Timings = Timings()
    failure: str = ""
    truncated: bool = False
    markdown: str = ""


def inspect(
    source: str | bytes | os.PathLike[str],
    *,
    settings: Settings = _DEFAULTS,
    url: str = "",
    content_type: str | None = None,
) -> Inspection:
    """Inspect a URL, a file or bytes. `url` and `content_type` stand in for what a file does not say.

    Raises `UsageError` if there is no such file, and `SettingsError` if a syntax to read is not known. Failures
    of the web are in the answer.
    """
    return next(inspect_all([source], settings=settings, url=url, content_type=content_type))


def inspect_all(
    sources: Iterable[str | bytes | os.PathLike[str]],
    *,
    settings: Settings = _DEFAULTS,
    url: str = "",
    content_type: str | None = None,
) -> Iterator[Inspection]:
    """Inspect one after another, all in one child process. Otherwise as `inspect`."""
    if settings.transform.syntaxes:
        from quadloom.documents.syntaxes.plugins import check_syntaxes

        check_syntaxes(settings)
    worker = InspectWorker()
    try:
        for source in sources:
            if isinstance(source, str) and source.lower().startswith(("http://", "https://")):
                yield _of_url(source, settings, worker)
                continue
            if isinstance(source, bytes):
                body, base = source, url or _NOWHERE
            else:
                body, base = _read(Path(source), settings), url or Path(source).absolute().as_uri()
            result = worker.transform(InspectTask(body, base, content_type, (), settings))
            yield _report(Inspection(url=base, size=len(body)), result, body)
    finally:
        worker.close()


def _of_url(href: str, settings: Settings, worker: InspectWorker) -> Inspection:
    visited = _visit(href, settings)
    result = visited.result
    begun = Inspection(
        url=result.url,
        status=result.status,
        robots=visited.robots,
        findings=tuple(reported(finding, result.url) for finding in result.findings),
        hops=visited.hops,
        timings=Timings(fetch=result.seconds),
    )
    if isinstance(result, Failure):
        return msgspec.structs.replace(begun, failure=f"{result.kind}: {result.message}")
    begun = msgspec.structs.replace(
        begun, url=result.final_url, size=len(result.body), truncated=result.truncated, media_type=result.content_type
    )
    task = InspectTask(result.body, result.final_url, result.content_type or None, result.headers, settings)
    return _report(begun, worker.transform(task), result.body)


class _InspectVisit(msgspec.Struct, frozen=True):
    """The site's answer, the redirects on the way, and what its robots.txt says."""

    result: Page | Failure
    hops: tuple[Hop, ...]
    robots: str


def _visit(href: str, settings: Settings) -> _InspectVisit:
    """Fetch a page politely, following redirects as visits of their own. Raises `UrlError` if it is no URL."""
    hops: tuple[Hop, ...] = ()
    fetcher = open_fetcher(settings)
    try:
        fetched = _fetch(fetcher, href, 0.0)
        while isinstance(fetched.result, Page) and fetched.result.hops and len(hops) < settings.limits.redirects:
            hop = fetched.result.hops[-1]
            hops = (*hops, hop)
            target = resolve(hop.location)
            if target is None:
                break
            same_host = host_of(target) == host_of(hop.url)
            fetched = _fetch(fetcher, target, fetched.pace.next_at if same_host else 0.0)
    finally:
        fetcher.close()
    return _InspectVisit(fetched.result, hops, _robots(fetched.result, settings))


def _fetch(fetcher: Fetcher, href: str, not_before: float) -> FetchResult:
    url = Url.parse(href)
    fetcher.submit([Visit(url.href, url.key, url.host, url.fingerprint, priority=0, not_before=not_before)])
    while not (fetched := fetcher.step(1.0)):
        pass
    return fetched[0]


def _robots(result: Page | Failure, settings: Settings) -> str:
    if settings.politeness.robots == "ignore":
        return "ignored"
    if isinstance(result, Page) or result.status:
        return "allowed"
    if result.kind == "robots":
        return "disallowed"
    return "unavailable" if result.message.startswith("robots.txt") else "unknown"


def _report(begun: Inspection, result: InspectResult, body: bytes) -> Inspection:
    found = result.transformed
    if found is None:
        finding = Finding(
            "transform-killed",
            f"its transformation {result.failure}",
            "error",
            advice="a crawl quarantines such a page; the limits are limits.transform_seconds and transform_bytes",
        )
        return msgspec.structs.replace(
            begun,
            failure=f"its transformation {result.failure}",
            findings=(*begun.findings, reported(finding, begun.url)),
        )
    return msgspec.structs.replace(
        begun,
        media_type=found.media_type,
        kind=found.kind,
        charset=found.charset,
        title=found.title,
        language=found.language,
        noindex=found.noindex,
        nofollow=found.nofollow,
        reasons=found.reasons,
        items=items_of(found),
        syntaxes=found.syntaxes,
        quads=result.nquads.count(b"\n"),
        nquads=result.nquads,
        links=found.links,
        findings=(*begun.findings, *_reports(found, begun.url)),
        features=found.audit.features,
        source=_source(body, found.charset),
        timings=Timings(begun.timings.fetch, result.seconds),
        markdown=result.markdown,
    )


def _reports(found: Transformed, url: str) -> list[FindingRecord]:
    ordered = sorted(found.findings, key=lambda finding: WEIGHT[finding.severity])
    return [reported(finding, url) for finding in ordered]


def _source(body: bytes, charset: str) -> str:
    return decode(body, charset) if charset and len(body) <= _MOST_SOURCE else ""


def _read(path: Path, settings: Settings) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(settings.limits.body_bytes)
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", hint="give a URL that begins with http:// or https://, a file, or - for stdin"
        ) from None
