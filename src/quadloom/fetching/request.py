"""What the client is asked to do, and the headers that say who we are and what we would like.

**Who.** `Quadloom/0.1 (+contact)`, and `From` where the contact is a mail address (RFC 9110 10.1.2): a site owner who
is unhappy must be able to tell us so.

**What.** RDF first, as linked data wants it: a server that can choose answers Turtle, RDF/XML … rather than HTML.
JSON-LD stands *below* HTML on purpose. Sites that speak ActivityPub answer `application/ld+json` with a JSON
stream of their social feed in place of the page, and pages whose data is in JSON-LD carry it in their HTML anyway; a
source that has nothing but JSON-LD still gives it. Ordinary sites ignore the RDF types and answer HTML.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from quadloom.fetching.http.content_coding import ADVERTISED
from quadloom.model.page import Failure, Page
from quadloom.settings import CrawlSettings
from quadloom.version import __version__

ACCEPT_PAGE = (
    "text/turtle, application/n-triples, application/n-quads, application/trig, application/rdf+xml;q=0.95,"
    " text/html;q=0.9, application/xhtml+xml;q=0.9, application/ld+json;q=0.8,"
    " application/atom+xml;q=0.7, application/rss+xml;q=0.7, application/xml;q=0.6, */*;q=0.1"
)
ACCEPT_ROBOTS = "text/plain, */*;q=0.1"
ACCEPT_CONTEXT = "application/ld+json, application/json;q=0.9, */*;q=0.1"
ACCEPT_ANY = "*/*"

Result = Page | Failure
Done = Callable[[Result], None]


class FetchRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One request. `not_before` and `expires` are unix times; `expires` = a lease that ends, 0 = never."""

    href: str
    accept: str = ACCEPT_PAGE
    etag: str = ""
    last_modified: str = ""
    priority: int = 3  # smaller goes first when sockets are scarce, as in `Discovery`
    not_before: float = 0.0
    expires: float = 0.0
    max_bytes: int = 0  # of the decoded body; 0 = limits.body_bytes
    redirects: int = 0  # hops to follow; 0 = a redirect is handed back as a page with its 3xx status
    method: str = "GET"
    payload: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()  # further ones, such as the content type of a payload
    wanted: Callable[[str, str], bool] | None = None  # (content type, URL): False cuts the transfer after the headers
    allow_hop: Callable[[str], str | None] | None = None  # (URL): why a redirect must not be followed, None = may
    sink: Callable[[bytes], None] | None = None  # takes the decoded body in blocks; the page's own body stays empty


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
    """Header lines of this request. Validators are what a server once sent us, so they are checked for line breaks."""
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
