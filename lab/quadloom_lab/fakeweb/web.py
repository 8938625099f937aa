"""The fake web as a function from requests to answers.

`FakeWeb.answer` is a pure function of the request and two attributes that a test may set: `revision`, the day of the
web, and `robots_status`, an outage of every robots.txt. The server, the oracle and the tests build on it.
"""

from __future__ import annotations

from quadloom.cli.demo_sites.server import preferred as preferred_type
from quadloom_lab.fakeweb.content import bodies
from quadloom_lab.fakeweb.content.feeds import DAY, EPOCH, rfc822
from quadloom_lab.fakeweb.content.site_files import SiteSearch, allowed
from quadloom_lab.fakeweb.exchange import FakeRequest, FakeResponse
from quadloom_lab.fakeweb.oracle import ExpectedResponse, Scope, expected, reachable
from quadloom_lab.fakeweb.sites.chance import number
from quadloom_lab.fakeweb.sites.hosts import HostPlan
from quadloom_lab.fakeweb.sites.layout import Layout, PageRef
from quadloom_lab.fakeweb.sites.spec import WebSpec
from quadloom_lab.fakeweb.sites.traits import changed_at, traits_of, vanished

REDIRECTS = {"moved": 301, "found": 302, "other": 303, "temporary": 307, "permanent": 308}


class FakeWeb:
    """One web. Equal specs, revisions and robots statuses give equal answers, in any process."""

    def __init__(self, spec: WebSpec | None = None) -> None:
        self.spec = spec or WebSpec()
        self.layout = Layout(self.spec)
        self.revision = 0
        self.robots_status = 0  # 0 = robots.txt as planned; else every robots.txt answers with this status
        self._search = SiteSearch(self.layout)

    @property
    def hosts(self) -> tuple[HostPlan, ...]:
        return self.layout.hosts

    @property
    def seeds(self) -> list[str]:
        """Where a crawl of the whole web starts: the first host's home page, from which all others are linked."""
        return [self.layout.bases[0] + "/"]

    @property
    def homes(self) -> list[str]:
        return [base + "/" for base in self.layout.bases]

    def hosts_override(self) -> dict[str, str]:
        """For the setting `guard.hosts`: how the reserved names are reached."""
        if self.spec.addressing != "names":
            return {}
        if self.spec.spread:
            return {host.name: self.layout.address(host.index) for host in self.hosts}
        return {"*.example": "127.0.0.1", "*.test": "127.0.0.1"}

    def allowed(self, url: str, agent: str = "quadloom") -> bool:
        """Whether robots.txt lets this crawler read the URL. False for hosts outside this web."""
        authority, slash, rest = url.removeprefix("http://").partition("/")
        host = self.layout.host_of(authority)
        return host is not None and allowed(host, slash + rest or "/", agent)

    def expected(self, url: str) -> ExpectedResponse:
        """What a plain GET of the URL returns now, according to the plan."""
        return expected(self.layout, self.answer, self.revision, url)

    def reachable(
        self, seeds: list[str] | None = None, *, scope: Scope = "any", sitemaps: bool = True, agent: str = "quadloom"
    ) -> set[str]:
        """URLs that a correct, polite crawler has asked for when it is done. See `quadloom_lab.fakeweb.oracle`."""
        if self.robots_status >= 500:
            return set()  # RFC 9309, 2.3.1.4: unreachable means complete disallow
        return reachable(self.layout, self.revision, seeds or self.seeds, scope, sitemaps, agent)

    def answer(self, request: FakeRequest) -> FakeResponse:
        host = self.layout.host_of(request.host)
        if host is None:
            return _plain(421, f"no host {request.host} here")
        ref = self.layout.find(host, request.target, self.revision)
        if ref is None:
            return self._error(404, "There is no such page here.")
        if vanished(self.layout, ref, self.revision):
            return self._error(410, "This page was taken off the web.")
        match ref.area:
            case "special":
                return self._special(host, ref, request)
            case "id":
                return self._negotiated(ref, request.accept)
            case "robots" if self.robots_status:
                return _plain(self.robots_status, "robots.txt is out of order")
            case _:
                return self._page(host, ref, request)

    def _page(self, host: HostPlan, ref: PageRef, request: FakeRequest, delay: float = 0.0) -> FakeResponse:
        body = bodies.body_of(self.layout, self._search, ref, self.revision)
        if body is None:
            return self._error(404, "There is no such file here.")
        headers = [("Content-Type", body.content_type), *self._validators(host, ref)]
        if ref.area == "item" and self.layout.is_html(ref):
            traits = traits_of(self.layout, ref)
            if traits.robots and traits.robots_header:
                headers.append(("X-Robots-Tag", traits.robots))
        return FakeResponse(200, tuple(headers), body.content, max(delay, self.spec.latency))

    def _validators(self, host: HostPlan, ref: PageRef) -> list[tuple[str, str]]:
        if ref.area not in ("item", "page", "data"):
            return []
        found = []
        changed = changed_at(self.layout, ref, self.revision)
        if host.validators in ("both", "etag"):
            banner = self.revision if self._has_banner(ref) else 0
            found.append(("ETag", f'"{number(self.spec.seed, ref.host, ref.number, ref.extra, changed, banner):016x}"'))
        if host.validators in ("both", "modified") and not self._has_banner(ref):
            found.append(("Last-Modified", rfc822(EPOCH + DAY * changed)))
        return found

    def _has_banner(self, ref: PageRef) -> bool:
        return self.layout.is_html(ref) and traits_of(self.layout, ref).banner

    def _special(self, host: HostPlan, ref: PageRef, request: FakeRequest) -> FakeResponse:
        kind = self.layout.special(host, ref.number)
        target = self.special_target(ref)
        if target:
            return _redirect(REDIRECTS.get(kind, 302), target)
        match kind:
            case "missing":
                return self._error(404, "Not found.")
            case "gone":
                return self._error(410, "Gone for good.")
            case "error":
                return self._error(500, "Something broke here.")
            case "busy":
                return self._busy()
            case "flaky" if request.attempt == 0:
                return self._busy()
            case _:
                delay = self.spec.slow_seconds if kind == "slow" else 0.0
                return self._page(host, ref, request, delay)._replace(cacheable=kind != "flaky")

    def special_target(self, ref: PageRef) -> str:
        """Where a special page redirects to, or the empty string."""
        return bodies.redirect_target(self.layout, ref)

    def _negotiated(self, ref: PageRef, accept: str) -> FakeResponse:
        """A name that is not a document: 303 to the page or to the data, whichever the reader prefers."""
        ending = preferred(accept)
        there = PageRef(ref.host, "data", ref.number, ending) if ending else PageRef(ref.host, "page", ref.number)
        answer = _redirect(303, self.layout.url(there))
        return answer._replace(headers=(*answer.headers, ("Vary", "Accept")), cacheable=False)

    @staticmethod
    def _busy() -> FakeResponse:
        answer = _plain(503, "Too busy, come back in a second.")
        return answer._replace(headers=(*answer.headers, ("Retry-After", "1")), cacheable=False)

    @staticmethod
    def _error(status: int, text: str) -> FakeResponse:
        page = f"<!DOCTYPE html><html lang=en><title>{status}</title><h1>{status}</h1><p>{text}</p></html>"
        return FakeResponse(status, (("Content-Type", "text/html; charset=utf-8"),), page.encode())


def _plain(status: int, text: str) -> FakeResponse:
    return FakeResponse(status, (("Content-Type", "text/plain; charset=utf-8"),), text.encode())


def _redirect(status: int, target: str) -> FakeResponse:
    return FakeResponse(status, (("Location", target), ("Content-Type", "text/plain")), b"")


RDF_TYPES = {
    "text/turtle": "ttl",
    "application/rdf+xml": "rdf",
    "application/ld+json": "jsonld",
    "application/n-triples": "nt",
}


def preferred(accept: str) -> str:
    """Ending of the RDF format that the Accept header ranks above HTML, or the empty string for the page."""
    return RDF_TYPES.get(preferred_type(accept, RDF_TYPES), "")


def demo_web(port: int = 0) -> FakeWeb:
    """The web of `quadloom demo --offline`: six hosts and about a hundred pages, without faults or traps."""
    return FakeWeb(
        WebSpec(seed=7, port=port, curated=True, faults=False, traps=False, languages=False, scale=0.12, links=14)
    )


__all__ = ["FakeRequest", "FakeResponse", "FakeWeb", "demo_web"]
