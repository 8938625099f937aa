"""How a topical crawl reaches the web.

All decisions of this package are plain functions and generators that yield `SiteRequest`s. The `Access` seam makes the
requests: with the crawl's fetcher (`polite_access`), or against a simulated web in the same process. A generator that
yields requests and receives responses is a *request sequence*; many can run on different hosts at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Literal, Protocol, TypeVar

import msgspec

from quadloom.model.url import host_of

Purpose = Literal["home", "search", "probe", "index", "sitemap", "page"]
T = TypeVar("T")


class SiteRequest(msgspec.Struct, frozen=True):
    """One request. If `method` is post, `fields` are sent as a form, or `payload` as JSON. `purpose` is for the log."""

    url: str
    method: Literal["get", "post"] = "get"
    fields: tuple[tuple[str, str], ...] = ()
    purpose: Purpose = "page"
    multipart: bool = False
    score: float = 0.0  # estimated relevance of a page, stored with it
    payload: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def host(self) -> str:
        return host_of(self.url)


class SiteResponse(msgspec.Struct, frozen=True):
    """The response after redirects. `headers` have names in lower case."""

    url: str
    status: int
    content_type: str
    body: bytes
    headers: tuple[tuple[str, str], ...] = ()

    @property
    def good(self) -> bool:
        return 200 <= self.status < 300

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")


class Access(Protocol):
    """Makes requests within robots.txt, pace, scope and guard."""

    def ask(self, requests: Sequence[SiteRequest], /) -> list[SiteResponse | None]:
        """Responses in the same order. None = not allowed, not reached, or no page. The hosts are distinct."""
        ...


RequestSequence = Generator[SiteRequest, SiteResponse | None, T]


def run_sequence(sequence: RequestSequence[T], access: Access) -> T:
    """Run one sequence alone, to its end."""
    try:
        request = next(sequence)
        while True:
            request = sequence.send(access.ask([request])[0])
    except StopIteration as end:
        value: T = end.value
        return value
