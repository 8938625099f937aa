"""What a fake web is made from: one frozen record, so that it can be sent to the server process as JSON."""

from __future__ import annotations

from typing import Literal

import msgspec

Subject = Literal["books", "events", "recipes", "people", "museums", "products", "datasets", "news"]
Language = Literal["en", "de", "fr", "ru", "ja"]
Addressing = Literal["names", "addresses", "ports"]

SUBJECTS: tuple[Subject, ...] = (
    "books", "events", "recipes", "people", "museums", "products", "datasets", "news",
)  # fmt: skip


class WebSpec(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a fake web. Two equal specs are two equal webs, byte for byte.

    `pages` counts numbered content pages over all hosts. Home and listing pages, redirects, errors and the registry of
    people come on top: 21 % more URLs to visit with 20,000 pages on 40 hosts, 39 % with 2,000.
    `addressing` says how a host is reached: by a reserved name and one port (`names`), by an address of its own in
    127.1.0.0/16 (`addresses`), or by a port of its own (`ports`, `port` is the first). With `spread`, names resolve
    to one address each (see `FakeWeb.hosts_override`).
    """

    seed: int = 1
    pages: int = 2000
    hosts: int = 40
    scale: float = 1.0  # 1.0: HTML of 40 KB on average
    links: int = 96  # links of an average HTML page
    port: int = 0  # 0: the scheme's default, so no port in URLs
    addressing: Addressing = "names"
    spread: bool = False
    faults: bool = True  # errors, odd charsets, broken markup, wrong labels, slow pages
    traps: bool = True  # endless calendar, session ids, query facets
    files: bool = True  # feeds, RDF, XML and binaries among the numbered pages; without, all are HTML
    languages: bool = True  # every fifth domain is in another language than English
    growth: int = 1  # new pages per revision on a news host
    crawl_delay: float = 1.0  # Crawl-delay of the hosts that have one, seconds
    slow_seconds: float = 0.4
    latency: float = 0.0  # seconds that every page lets its reader wait
    curated: bool = False  # the small web of `quadloom demo`
