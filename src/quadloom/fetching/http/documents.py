"""Single requests over HTTP: JSON-LD contexts, stylesheets, external services, web searchers.

They have the same guard, limits and headers as the crawl; an auxiliary request is the classic way around both. The
crawl returns redirects to the frontier; a single request follows them, each hop through the guard. robots.txt is not
read: these requests are made on behalf of a person or a document, they are not crawling.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType

from quadloom.errors import FetchError
from quadloom.fetching.dns import DnsLookup, system_lookup
from quadloom.fetching.http.transport import CurlTransport
from quadloom.fetching.transport import ACCEPT_PAGE, FetchRequest, Result
from quadloom.model.page import Failure, Page
from quadloom.settings import Settings


class DocumentFetcher:
    """Fetches one document at a time and waits for it; connections stay open between requests.

    Raises only `FetchError`. Close it, or use it as a context manager.
    """

    def __init__(self, settings: Settings, *, lookup: DnsLookup = system_lookup, ca_file: str = "") -> None:
        self._transport = CurlTransport(settings, lookup=lookup, ca_file=ca_file)
        self._redirects = settings.limits.redirects

    def fetch_one(
        self,
        href: str,
        *,
        accept: str = ACCEPT_PAGE,
        method: str = "GET",
        payload: bytes = b"",
        headers: tuple[tuple[str, str], ...] = (),
        max_bytes: int = 0,
        allow_hop: Callable[[str], str | None] | None = None,
        sink: Callable[[bytes], None] | None = None,
    ) -> Page:
        """One request. `sink` takes a long body in blocks; `allow_hop` may veto redirects; `max_bytes` 0 = the limit.

        Only GET and HEAD follow redirects: a payload goes to the URL it was sent to, or nowhere.
        """
        return self._run(
            FetchRequest(
                href=href,
                accept=accept,
                method=method,
                payload=payload,
                headers=headers,
                max_bytes=max_bytes,
                allow_hop=allow_hop,
                sink=sink,
                redirects=self._redirects if method in ("GET", "HEAD") else 0,
            )
        )

    def close(self) -> None:
        self._transport.close()

    def __enter__(self) -> DocumentFetcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, request: FetchRequest) -> Page:
        results: list[Result] = []
        self._transport.submit(request, results.append)
        while not results:
            self._transport.step(1.0)
        result = results[0]
        if isinstance(result, Failure):
            raise _error(result)
        return result


def fetch_one(href: str, settings: Settings, *, accept: str = ACCEPT_PAGE, max_bytes: int = 0) -> Page:
    """One page with connections of its own; for more than one keep a `DocumentFetcher`."""
    with DocumentFetcher(settings) as transport:
        return transport.fetch_one(href, accept=accept, max_bytes=max_bytes)


def _error(failure: Failure) -> FetchError:
    advice = failure.findings[0].advice if failure.findings else ""
    return FetchError(
        failure.kind,
        f"{failure.url}: {failure.message}",
        hint=advice,
        transient=failure.transient,
        retry_after=failure.retry_after,
        status=failure.status,
    )
