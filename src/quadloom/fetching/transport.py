"""The seam between the fetcher and whatever answers its requests: requests, results, limits and the protocol.

Three implementations pass the same contract suite (`tests/contract/test_transport.py`): libcurl
(`http.transport.CurlTransport`), replay from WARC archives (`replay.ReplayTransport`) and a plain function in the same
process (`in_process.InProcessTransport`). `unit.open_transport` chooses one by URL (`crawl.transport`).

**Identity.** `Quadloom/0.2.0 (+contact)`, and `From` if the contact is a mail address (RFC 9110 10.1.2): the owner of a
site must be able to complain.

**Accept.** RDF comes first: a server that can choose answers with Turtle, RDF/XML … rather than HTML. JSON-LD ranks
*below* HTML on purpose. Sites that speak ActivityPub answer `application/ld+json` with a JSON stream of their social
feed instead of the page, and pages whose data is in JSON-LD carry it in their HTML anyway; a source that has nothing
but JSON-LD still sends it. Ordinary sites ignore the RDF types and answer with HTML.

**Wanted types.** `by_default` refuses only what can hold neither data nor text. Everything else passes, because labels
are often wrong: RDF dumps come as `application/octet-stream`, Turtle as `text/plain`, sitemaps as `application/gzip`;
the detect phase looks inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Protocol

import msgspec

from quadloom.documents.archives.content_coding import ADVERTISED
from quadloom.model.finding import Finding, Severity
from quadloom.model.page import Failure, FailureKind, Hop, Page
from quadloom.model.version import __version__
from quadloom.settings import CrawlSettings, LimitSettings

ACCEPT_PAGE = (
    "text/turtle, application/n-triples, application/n-quads, application/trig, application/rdf+xml;q=0.95,"
    " text/html;q=0.9, application/xhtml+xml;q=0.9, application/ld+json;q=0.8,"
    " application/atom+xml;q=0.7, application/rss+xml;q=0.7, application/xml;q=0.6, */*;q=0.1"
)
ACCEPT_ROBOTS = "text/plain, */*;q=0.1"
ACCEPT_CONTEXT = "application/ld+json, application/json;q=0.9, */*;q=0.1"
ACCEPT_ANY = "*/*"

REDIRECTS = frozenset({301, 302, 303, 307, 308})

# A second request may succeed after these; a bomb, a refused address or a wrong certificate does not change.
_TRANSIENT: frozenset[FailureKind] = frozenset({"dns", "connect", "timeout", "too-slow", "protocol", "internal"})

# What to do about each kind of failure: in findings, at the end of a crawl, in `inspect`.
ADVICE: dict[str, str] = {
    "bomb": "if the site is trusted, raise limits.decode_ratio",
    "too-large": "raise limits.large_bytes to read it",
    "too-slow": "see limits.low_speed_bytes and limits.low_speed_seconds",
    "timeout": "the server is too slow or unreachable; the limit is limits.total_seconds",
    "headers": "see limits.header_bytes and limits.header_count",
    "redirects": "see limits.redirects",
    "dns": "check the spelling of the host, and that this machine is online; guard.hosts can name an address",
    "connect": "check host and port, and that the server is running",
    "guard": 'only public addresses are visited; to allow your own, write allow = ["127.0.0.0/8"], or your network, '
    "below [guard] in quadloom.toml; guard.ports opens other ports",
    "not-archived": "a replay answers only what the archive holds (crawl.transport)",
    "tls": "certificates are always verified; guard.authorities names a file of authorities to trust",
    "robots": "ask the owner of the site, or begin at another page",
    "scope": "`quadloom scope show` prints which URLs may be visited",
    "unwanted": "to read such content, see crawl.read_types",
    "status": "open the URL in a browser; if the server does not have the page, correct the links that lead to it",
}
_QUIET: frozenset[FailureKind] = frozenset({"unwanted", "robots", "scope", "not-archived"})  # as intended, not a defect

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})

Headers = tuple[tuple[str, str], ...]
Result = Page | Failure
Done = Callable[[Result], None]
Refusal = tuple[FailureKind, str]
"""Why a response is not read: the kind of the failure and its message."""
Wanted = Callable[[str], bool]
"""(content type) → whether the body is worth reading."""

_UNWANTED_FAMILIES = ("audio/", "video/", "font/", "model/", "image/")
_DRAWING = "image/svg+xml"  # XML, with texts and metadata
_UNWANTED_TYPES = frozenset(
    {
        "application/vnd.android.package-archive",
        "application/vnd.microsoft.portable-executable",
        "application/vnd.ms-fontobject",
        "application/x-apple-diskimage",
        "application/x-debian-package",
        "application/x-iso9660-image",
        "application/x-msdownload",
        "application/x-msi",
        "application/x-rpm",
        "application/x-shockwave-flash",
    }
)


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `not_before`, `expires` and `send_before` are unix times, 0 = none. The request has ended at
    `expires`. From `send_before` on nothing of it is sent: another worker may own the host by then."""

    href: str
    accept: str = ACCEPT_PAGE
    etag: str = ""
    last_modified: str = ""
    priority: int = 3  # smaller goes first when sockets are scarce, as in `Discovery`
    not_before: float = 0.0
    expires: float = 0.0
    send_before: float = 0.0
    paced: bool = True  # waits for its turn at the address, too
    max_bytes: int = 0  # of the decoded body; 0 = limits.body_bytes
    redirects: int = 0  # hops to follow; 0 = a redirect is handed back as a page with its 3xx status
    method: str = "GET"
    payload: bytes = b""
    headers: Headers = ()  # further ones, such as the content type of a payload
    wanted: Wanted | None = None  # False cuts the transfer after the headers
    allow_hop: Callable[[str], str | None] | None = None  # (URL): why a redirect is not followed; None = it is
    sink: Callable[[bytes], None] | None = None  # takes the decoded body in blocks; the page's own body stays empty


TOO_LATE: Refusal = ("timeout", "the lease would end before the request could be sent")


def is_too_late(request: FetchRequest, now: float) -> bool:
    return 0.0 < request.send_before <= now


class Transport(Protocol):
    """Answers requests. `submit` them, then call `step` until `in_flight` is 0. One thread; only `wake` from any.

    Guarantees:

    - Each request is answered exactly once, with a `Page` or a `Failure`, from within a later `step`; unless `close`
      comes first, after which no request is answered.
    - Nothing is raised for what a server does: the web's errors are `Failure`s with a kind and a message.
    - Every limit of `settings.limits` holds, on decoded bytes; a longer body is cut, with a finding.
    - No connection to an address, scheme or port that `settings.guard` refuses, at the first request or at any hop.
    - No request begins before its `not_before`.
    - A redirect is returned as a page with its 3xx status and one hop, unless `redirects` of the request allows
      more; then each hop passes the same checks as the first request.
    """

    @property
    def in_flight(self) -> int:
        """Requests that were submitted and not answered yet."""
        ...

    def submit(self, request: FetchRequest, done: Done) -> None:
        """Accept a request. `done` is called from a later `step`, never from here."""
        ...

    def step(self, timeout: float = 0.0) -> int:
        """Advance all requests, waiting at most `timeout` seconds for one. Returns how many were answered."""
        ...

    def wake(self) -> None:
        """End a running `step` early; may be called from another thread."""
        ...

    def close(self) -> None:
        """Drop what is in flight without answering it, and release everything."""
        ...


def user_agent(crawl: CrawlSettings) -> str:
    contact = f" (+{crawl.contact})" if crawl.contact else ""
    return f"{crawl.user_agent}/{__version__}{contact}"


def identity(crawl: CrawlSettings) -> tuple[str, ...]:
    """Header lines that go with every request."""
    lines = [f"User-Agent: {_one_line(user_agent(crawl))}", f"Accept-Encoding: {ADVERTISED}"]
    contact = crawl.contact.removeprefix("mailto:")
    if "@" in contact and "/" not in contact:
        lines.append(f"From: {_one_line(contact)}")
    return tuple(lines)


def header_lines(request: FetchRequest) -> list[str]:
    """Header lines of this request. Validators once came from a server, so line breaks are removed from them too."""
    lines = [f"Accept: {request.accept}"]
    if request.etag:
        lines.append(f"If-None-Match: {_one_line(request.etag)}")
    if request.last_modified:
        lines.append(f"If-Modified-Since: {_one_line(request.last_modified)}")
    lines.extend(f"{_one_line(name)}: {_one_line(value)}" for name, value in request.headers)
    return lines


def _one_line(value: str) -> str:
    """Header injection stops here: no control character reaches the wire."""
    return "".join(char for char in value if char >= " " and char != "\x7f")


@lru_cache(maxsize=4096)
def by_default(content_type: str) -> bool:
    """False for pictures of pixels, sound, film, fonts, installers and disk images; the transfer is then cut after the
    headers."""
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == _DRAWING:
        return True
    return not media_type.startswith(_UNWANTED_FAMILIES) and media_type not in _UNWANTED_TYPES


def wanted_types(read: Sequence[str], skipped: Sequence[str]) -> Wanted:
    """As `by_default`, with the media types that `read` matches (`crawl.read_types`), without those that `skipped`
    matches (`crawl.skip_types`)."""
    reading, skipping = ([glob.strip().lower() for glob in globs] for globs in (read, skipped))
    if not reading and not skipping:
        return by_default

    @lru_cache(maxsize=4096)
    def wanted(content_type: str) -> bool:
        media_type = content_type.partition(";")[0].strip().lower()
        if any(fnmatchcase(media_type, glob) for glob in skipping):
            return False
        return by_default(content_type) or any(fnmatchcase(media_type, glob) for glob in reading)

    return wanted


def refused_response(
    request: FetchRequest, status: int, headers: Headers, size: int, limits: LimitSettings
) -> Refusal | None:
    """Why the body of a response is left unread: its headers, `size` bytes in all, are over a limit; or it is too long
    or unwanted, by the Content-Length and Content-Type of a 2xx response."""
    if size > limits.header_bytes:
        return "headers", f"{size} bytes of headers (limits.header_bytes)"
    if len(headers) > limits.header_count:
        return "headers", f"{len(headers)} headers (limits.header_count)"
    if not 200 <= status < 300:
        return None
    length = content_type = ""
    for name, value in reversed(headers):  # the first of each name counts
        if name == "content-length":
            length = value
        elif name == "content-type":
            content_type = value
    if length.isdecimal() and len(length) < 20 and int(length) > limits.large_bytes:
        return "too-large", f"{length} bytes announced (limits.large_bytes)"
    if request.wanted is not None and not request.wanted(content_type):
        return "unwanted", f"content type {content_type[:80]!r} is not asked for"
    return None


def refused_hop(request: FetchRequest, hops: Sequence[Hop], target: str | None) -> Refusal | None:
    """Whether the last of `hops` is not followed: it leads nowhere, in a circle, too far or out of bounds.

    `target` is its resolved location; None = not an http(s) URL.
    """
    if target is None:
        return "guard", f"redirect to {hops[-1].location!r}, which is not an http(s) URL"
    if any(hop.url == target for hop in hops):
        return "redirects", f"redirects in a circle at {target}"
    if len(hops) > request.redirects:
        return "redirects", f"more than {request.redirects} redirects (limits.redirects)"
    reason = request.allow_hop(target) if request.allow_hop else None
    return None if reason is None else ("scope", f"redirect to {target}: {reason}")


def without_login(href: str) -> str:
    """A crawled link must not log in anywhere: `user:password@` is dropped."""
    start = href.find("//") + 2
    stop = href.find("/", start)
    authority = href[start:] if stop < 0 else href[start:stop]
    if "@" not in authority:
        return href
    return href[:start] + authority.rpartition("@")[2] + (href[stop:] if stop >= 0 else "")


def make_failure(
    url: str,
    kind: FailureKind,
    message: str,
    *,
    fetched_at: float,
    seconds: float = 0.0,
    transient: bool | None = None,
    status: int = 0,
    retry_after: float | None = None,
    address: str = "",
    hops: tuple[Hop, ...] = (),
    headers: tuple[tuple[str, str], ...] = (),
) -> Failure:
    """A failure with its finding."""
    severity: Severity = "info" if kind in _QUIET else "warning"
    finding = Finding(f"fetch-{kind}", message, severity, "fetch", advice=ADVICE.get(kind, ""))
    return Failure(
        url=url,
        kind=kind,
        message=message,
        transient=kind in _TRANSIENT if transient is None else transient,
        fetched_at=fetched_at,
        seconds=seconds,
        status=status,
        retry_after=retry_after,
        address=address,
        findings=(finding,),
        hops=hops,
        headers=headers,
    )


def status_is_transient(status: int) -> bool:
    """Whether the server itself says that another time may be better."""
    return status in _RETRY_STATUS
