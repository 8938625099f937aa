"""What a server answered, exactly; or why there is no answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from quadloom.model.finding import Finding

FailureKind = Literal[
    "robots",  # the site does not want us there
    "guard",  # not a public address, or a scheme or port that is not allowed
    "scope",  # a redirect left the crawl's scope
    "dns",
    "connect",
    "tls",
    "timeout",
    "too-large",
    "too-slow",
    "bomb",  # decoded bytes or ratio over the limit
    "headers",  # header bytes or count over the limit
    "redirects",  # a loop, or too many hops
    "protocol",  # broken chunking, unknown coding, more than one coding
    "unwanted",  # a content type that was not asked for, cut after the headers
    "status",  # an HTTP error
    "not-archived",  # asked of an archive that does not hold it (`crawl.transport`)
    "quarantined",  # killed two transform workers
    "internal",
]


class Hop(msgspec.Struct, frozen=True, array_like=True):
    """One redirect that was followed."""

    url: str
    status: int
    location: str


class Page(msgspec.Struct, frozen=True, array_like=True, tag="page"):
    """A response. `body` is decoded from its content coding, cut at the size limit if `truncated`."""

    url: str  # requested
    final_url: str  # after redirects
    status: int
    headers: tuple[tuple[str, str], ...]  # of the final response, names in lower case
    body: bytes
    fetched_at: float  # unix time at which the request was sent
    seconds: float  # until the last byte
    address: str = ""
    http_version: str = "1.1"
    hops: tuple[Hop, ...] = ()
    truncated: bool = False
    findings: tuple[Finding, ...] = ()
    wire_bytes: int = 0  # as transferred, before decoding: what bandwidth budgets count

    def header(self, name: str) -> str:
        """First value of a header, or the empty string. Names are compared in lower case."""
        for key, value in self.headers:
            if key == name:
                return value
        return ""

    @property
    def content_type(self) -> str:
        return self.header("content-type")


class Failure(msgspec.Struct, frozen=True, array_like=True, tag="failure"):
    """A visit without a page. `transient` failures are tried again with growing pauses."""

    url: str
    kind: FailureKind
    message: str
    transient: bool
    fetched_at: float
    seconds: float = 0.0
    status: int = 0
    retry_after: float | None = None
    address: str = ""
    findings: tuple[Finding, ...] = ()
    hops: tuple[Hop, ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body_bytes: int = 0  # of an error's page, which is not stored

    @property
    def is_unsent(self) -> bool:
        """The lease would have ended before the request: the host was asked nothing."""
        return self.kind == "timeout" and not self.seconds and not self.status


class RobotsUpdate(msgspec.Struct, frozen=True, array_like=True):
    """A robots.txt that was just read: for the catalog. `robots` is an encoded `RobotsRow`.

    `response`: the file as the server sent it, for the archive; None if there was none.
    """

    host: str
    robots: bytes
    expires: float
    crawl_delay: float
    sitemaps: tuple[str, ...] = ()
    response: Page | None = None
