"""`/about`, which the user agent links to, and `/topics`, what this warehouse looks out for."""

from __future__ import annotations

import msgspec

from quadloom.fetching.transport import user_agent
from quadloom.web.server.requests import ViewResponse, WebRequest

_TOPIC = "topic:"  # names of the catalog
_MOST = 500


class AboutView(msgspec.Struct, frozen=True, kw_only=True):
    user_agent: str
    token: str  # the word that robots.txt rules address
    contact: str
    delay: float
    obeys_robots: bool


class TopicCrawl(msgspec.Struct, frozen=True, kw_only=True):
    """How a topic's last crawl went (`quadloom.topical.topic` writes it). `harvest`: share of relevant documents."""

    name: str = ""
    broad: str = ""
    narrow: str = ""
    requests: int = 0
    documents: int = 0
    harvest: float = 0.0
    finished_at: float = 0.0
    graph: str = ""


def about_page(ask: WebRequest) -> ViewResponse:
    crawl = ask.desk.settings.crawl
    contact = crawl.contact or ask.warehouse.contact
    return ViewResponse(
        "about.html",
        AboutView(
            user_agent=user_agent(msgspec.structs.replace(crawl, contact=contact)),
            token=crawl.user_agent,
            contact=contact,
            delay=ask.desk.settings.politeness.delay,
            obeys_robots=ask.desk.settings.politeness.robots == "obey",
        ),
    )


def topics_page(ask: WebRequest) -> ViewResponse:
    catalog = ask.warehouse.catalog
    found = [_topic(name.removeprefix(_TOPIC), catalog.get(name) or b"{}") for name in catalog.names(_TOPIC)[:_MOST]]
    return ViewResponse("topics.html", {"topics": sorted(found, key=lambda topic: -topic.finished_at)})


def _topic(name: str, stored: bytes) -> TopicCrawl:
    try:
        return msgspec.structs.replace(msgspec.json.decode(stored, type=TopicCrawl), name=name)
    except msgspec.DecodeError:
        return TopicCrawl(name=name)  # of another version: named, not hidden
