"""`/about`, which the user agent links to, and `/topics`, the topical crawls of this warehouse."""

from __future__ import annotations

import msgspec

from quadloom.fetching.http.request import user_agent
from quadloom.web.server.requests import ViewResponse, WebRequest

_TOPIC = "topic:"  # prefix of their names in the catalog
_MOST = 500


class AboutView(msgspec.Struct, frozen=True, kw_only=True):
    user_agent: str
    token: str  # the name that robots.txt rules use
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
        ),
    )


def topics_page(request: WebRequest) -> ViewResponse:
    catalog = request.warehouse.stores.catalog
    topics = [_topic(name.removeprefix(_TOPIC), catalog.get(name) or b"{}") for name in catalog.names(_TOPIC)[:_MOST]]
    return ViewResponse("topics.html", {"topics": sorted(topics, key=lambda topic: -topic.finished_at)})


def _topic(name: str, stored: bytes) -> TopicCrawl:
    try:
        return msgspec.structs.replace(msgspec.json.decode(stored, type=TopicCrawl), name=name)
    except msgspec.DecodeError:
        return TopicCrawl(name=name)  # written by another version: listed by name, not hidden
