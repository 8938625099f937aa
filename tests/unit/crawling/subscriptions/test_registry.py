"""What can be subscribed to, and what happens when a subscription is added or removed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from quadloom.crawling.subscriptions.registry import NAMES, checked, read_subscriptions
from quadloom.crawling.subscriptions.standing_queries import last_answer
from quadloom.errors import NothingFound, QueryError, QueryLimit, QueryRefused, QuerySyntaxError, UrlError, UsageError
from quadloom.model.event import Notice
from quadloom.model.subscription import Subscription
from quadloom.settings import Settings
from quadloom.stores.protocols.outbox import Delivery
from quadloom.warehouse import Warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "warehouse", settings=Settings()) as opened:
        yield opened


def of_pages(subscription: Subscription) -> Subscription:
    """Checked without a query process: pages do not need one."""
    return checked(subscription, lambda: pytest.fail("nothing to parse"), Settings().limits)


def test_a_subscription_is_to_pages_or_to_a_query() -> None:
    for wrong in (Subscription(id="s"), Subscription(id="s", sites=("a.example",), query="ASK {}")):
        with pytest.raises(UsageError):
            of_pages(wrong)


def test_names_become_canonical() -> None:
    given = Subscription(
        id="s",
        urls=("https://A.example/x?utm_source=mail#part", "https://a.example/x"),
        sites=("https://Example.org/", "example.org", "Bücher.example", "shop.example:8080"),
    )
    subscription = of_pages(given)
    assert subscription.urls == ("https://a.example/x",)
    assert subscription.sites == ("example.org", "xn--bcher-kva.example", "shop.example:8080")


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"id": ""}, UsageError),
        ({"id": "a b"}, UsageError),
        ({"id": "x" * 65}, UsageError),
        ({"urls": ("mailto:x@a.example",)}, UrlError),
        ({"sites": ("http://",)}, UrlError),
        ({"types": ("not an iri",)}, UsageError),
        ({"sites": ("a.example",) * (NAMES + 1)}, UsageError),
        ({"webhook": "ftp://a.example/"}, UrlError),
        ({"webhook": "https://a.example/", "secret": "whsec_!"}, UsageError),
    ],
)
def test_an_invalid_subscription_is_refused(change: dict[str, str], error: type[Exception]) -> None:
    with pytest.raises(error):
        of_pages(replace(Subscription(id="s", sites=("a.example",)), **change))


@pytest.mark.parametrize(
    ("query", "error", "words"),
    [
        ("SELECT ?s WHERE { ?s a }", QuerySyntaxError, "line 1"),
        ("SELECT * { ?s unknown:p ?o }", QuerySyntaxError, "unknown prefix"),
        ("DELETE WHERE { ?s ?p ?o }", QueryRefused, ""),
        ("ASK { FILTER(" + "!" * 50_000 + "true) }", QueryLimit, ""),
    ],
)
def test_a_query_that_cannot_be_asked_is_refused(
    warehouse: Warehouse, query: str, error: type[QueryError], words: str
) -> None:
    with pytest.raises(error) as raised:
        warehouse.subscriptions.checked(Subscription(id="q", query=query))
    assert words in raised.value.message and raised.value.hint
    good = warehouse.subscriptions.checked(Subscription(id="q", query="SELECT ?s { ?s a schema:Event }"))
    assert good.query, "and the service answers the next one"


def test_a_subscription_begins_with_the_next_notice_and_is_removed_completely(warehouse: Warehouse) -> None:
    old = Notice(at=1.0, subscription="s", kind="new")
    warehouse.stores.outbox.append([old, old])
    warehouse.subscriptions.add(warehouse.subscriptions.checked(Subscription(id="s", query="ASK {}")))
    assert warehouse.stores.outbox.delivery("s") == Delivery(subscription="s", delivered=2)
    with pytest.raises(UsageError, match="already"):
        warehouse.subscriptions.add(Subscription(id="s", sites=("b.example",)))
    warehouse.stores.catalog.values.put("standing:s", b"\x91\xa1a")
    assert last_answer(warehouse.stores.catalog, "s") == ["a"]
    warehouse.subscriptions.remove("s")
    assert read_subscriptions(warehouse.stores.catalog) == []
    assert last_answer(warehouse.stores.catalog, "s") == []
    assert warehouse.stores.outbox.delivery("s") == Delivery(subscription="s")
    assert len(warehouse.stores.outbox.since(0)) == 2, "notices stay for readers by id"
    with pytest.raises(NothingFound):
        warehouse.subscriptions.remove("s")


def test_a_page_that_was_never_read_is_requested(warehouse: Warehouse) -> None:
    warehouse.requests.add_seeds(["https://seed.example/"])
    warehouse.subscriptions.add(Subscription(id="s", urls=("https://out-of-scope.example/",)))
    leased = warehouse.stores.frontier.lease(10, 1e12)
    assert {(visit.href, visit.priority) for visit in leased} == {
        ("https://out-of-scope.example/", 0),
        ("https://seed.example/", 1),
    }
