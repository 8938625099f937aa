"""Which hub a page names, and under which name the hub knows the page."""

from __future__ import annotations

import pytest

from quadloom.documents.pipeline import process_page
from quadloom.model.document import PushOffer
from quadloom.model.page import Page
from quadloom.model.visit import Visit
from quadloom.settings import Settings, SubscriptionSettings

URL = "https://a.example/feed"
ON = Settings(subscriptions=SubscriptionSettings(websub=True))
HUB, OTHER = "https://hub.example/", "https://other.example/hub"


def offer(body: str, type: str, *headers: tuple[str, str], settings: Settings = ON) -> PushOffer | None:
    page = Page(URL, URL, 200, (("content-type", type), *headers), body.encode(), 1.0, 0.1)
    return process_page(page, Visit(URL, URL, "a.example", 1), settings, ()).push


ATOM = f"""<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title><link rel="hub" href="{HUB}"/>
<link rel="self" href="/feed?all"/>
<entry><title>e</title><link href="/e"/><link rel="self" href="/e.atom"/></entry></feed>"""
RSS = f"""<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>t</title>
<atom:link rel="hub" href="{HUB}"/><item><title>e</title><link>https://a.example/e</link></item></channel></rss>"""
ENTRY_ONLY = """<feed xmlns="http://www.w3.org/2005/Atom"><title>t</title>
<entry><title>e</title><link href="/e"/><link rel="hub" href="https://evil.example/"/></entry></feed>"""
HTML = f'<html><head><title>t</title><link rel="hub" href="{HUB}"><link rel="self" href="https://a.example/"></head></html>'
JSON = f"""{{"version": "https://jsonfeed.org/version/1.1", "title": "t", "items": [],
"hubs": [{{"type": "WebSub", "url": "{HUB}"}}]}}"""


@pytest.mark.parametrize(
    ("body", "type", "topic"),
    [
        (ATOM, "application/atom+xml", "https://a.example/feed?all"),
        (RSS, "application/rss+xml", URL),
        (HTML, "text/html", "https://a.example/"),
        (JSON, "application/feed+json", URL),
    ],
)
def test_each_syntax_has_its_way_to_name_a_hub(body: str, type: str, topic: str) -> None:
    assert offer(body, type) == PushOffer(topic, HUB)
    assert offer(body, type, settings=Settings()) is None, "nobody looks unless it is wanted"


def test_headers_go_before_the_body() -> None:
    headers = ("link", f'<{OTHER}>; rel="hub", <https://a.example/self>; rel=self')
    assert offer(ATOM, "application/atom+xml", headers) == PushOffer("https://a.example/self", OTHER)
    assert offer("plain", "text/plain", ("link", f"<{OTHER}>; rel=hub")) == PushOffer(URL, OTHER)
    elsewhere = ("link", f'<{OTHER}>; rel=hub; anchor="https://b.example/"')
    assert offer("plain", "text/plain", elsewhere) is None, "that is said of another page"


def test_an_entry_does_not_speak_for_its_feed() -> None:
    assert offer(ENTRY_ONLY, "application/atom+xml") is None


def test_nothing_endless_is_sent_to_a_hub() -> None:
    long = "https://hub.example/" + "x" * 3000
    assert offer("plain", "text/plain", ("link", f"<{long}>; rel=hub")) is None
