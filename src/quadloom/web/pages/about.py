"""`/about`, which the user agent links to, and `/topics`, the topical crawls of this warehouse."""

from __future__ import annotations

import msgspec

from quadloom.crawling.topical.topic import TOPICS, TopicCrawl
from quadloom.errors import StoreError
from quadloom.fetching.http.signatures import DIRECTORY
from quadloom.fetching.transport import user_agent
from quadloom.stores.protocols.catalog import Catalog
from quadloom.web.server.requests import ViewResponse, WebRequest

_MAX_TOPICS = 500


class AboutView(msgspec.Struct, frozen=True, kw_only=True):
    user_agent: str
    token: str  # the name that robots.txt rules use
    contact: str
    delay: float
    obeys_robots: bool
    signs: str  # requests that are signed: never, asked, always
    keys: str  # where the keys are


def about_page(request: WebRequest) -> ViewResponse:
    crawl = request.site.settings.crawl
    contact = crawl.contact or request.warehouse.requests.contact
    return ViewResponse(
        "about.html",
        AboutView(
            user_agent=user_agent(msgspec.structs.replace(crawl, contact=contact)),
            token=crawl.user_agent,
            contact=contact,
            delay=request.site.settings.politeness.delay,
            obeys_robots=request.site.settings.politeness.robots == "obey",
            signs=crawl.sign,
            keys=DIRECTORY,
        ),
    )


def topics_page(request: WebRequest) -> ViewResponse:
    catalog = request.warehouse.stores.catalog
    found = [_topic(catalog, name) for name in TOPICS.keys(catalog)[:_MAX_TOPICS]]
    return ViewResponse("topics.html", {"topics": sorted(found, key=lambda topic: -topic.finished_at)})


def _topic(catalog: Catalog, name: str) -> TopicCrawl:
    try:
        return msgspec.structs.replace(TOPICS.get(catalog, name) or TopicCrawl(), name=name)
    except StoreError:
        return TopicCrawl(name=name)  # written by another version: listed by name, not hidden
