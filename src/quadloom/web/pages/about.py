"""`/about`, which the user agent links to, and `/topics`, what this warehouse looks out for."""

from __future__ import annotations

import msgspec

from quadloom.fetching.request import user_agent
from quadloom.web.asks import Ask, Json, View


class About(msgspec.Struct, frozen=True, kw_only=True):
    user_agent: str
    token: str  # the word that robots.txt rules address
    contact: str
    delay: float
    obeys_robots: bool


class Kept(msgspec.Struct, frozen=True):
    name: str
    value: Json


def about_page(ask: Ask) -> View:
    crawl = ask.desk.settings.crawl
    contact = crawl.contact or ask.warehouse.contact
    return View(
        "about.html",
        About(
            user_agent=user_agent(msgspec.structs.replace(crawl, contact=contact)),
            token=crawl.user_agent,
            contact=contact,
            delay=ask.desk.settings.politeness.delay,
            obeys_robots=ask.desk.settings.politeness.robots == "obey",
        ),
    )


def topics_page(ask: Ask) -> View:
    return View("topics.html", {"topics": _kept(ask, "topic:")})


def _kept(ask: Ask, prefix: str) -> list[Kept]:
    """Named values of the catalog; those that are not JSON for people are named only."""
    found = []
    for name in ask.warehouse.catalog.names(prefix)[:500]:
        try:
            value = msgspec.json.decode(ask.warehouse.catalog.get(name) or b"null")
        except msgspec.DecodeError:
            value = None
        found.append(Kept(name.removeprefix(prefix), value))
    return found
