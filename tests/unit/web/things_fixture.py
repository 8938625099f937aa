"""A small warehouse of events, products and people, as sites write them: in two spellings of schema.org, in parts,
twice on one page, on two sites."""

from __future__ import annotations

import json
import time
from pathlib import Path

from quadloom.crawling.subscriptions.saved_queries import SavedQuery
from quadloom.settings import Settings
from quadloom.stores.statistics import STATISTICS, Statistics
from quadloom.warehouse import Warehouse
from unit.web.web_fixture import store_page

Json = dict[str, object]
_CITIES = ("Ghent", "Lyon", "Ghent", "Turku", "Bergen")


def page_of(*things: Json, scheme: str = "http", body: str = "") -> str:
    """A page with JSON-LD."""
    parts = [{"@context": {"@vocab": f"{scheme}://schema.org/"}, **thing} for thing in things]
    scripts = "".join(f'<script type="application/ld+json">{json.dumps(part)}</script>' for part in parts)
    title = str(things[0].get("name", "")) if things else ""
    return f'<!doctype html><html lang="en"><head><title>{title}</title></head><body>{scripts}{body}</body></html>'


def event(number: int) -> Json:
    """Its place is a part with an address; its page says the same again as microdata, without an IRI."""
    return {
        "@id": f"http://events.example/{number}#it",
        "@type": "Event",
        "name": f"Concert {number}",
        "startDate": f"2026-05-{number + 10:02}T19:30:00Z",
        "location": {
            "@type": "Place",
            "name": f"Hall {number}",
            "address": {"@type": "PostalAddress", "addressLocality": _CITIES[number]},
            "geo": {"@type": "GeoCoordinates", "latitude": str(51.05 + number), "longitude": str(3.72 + number)},
        },
    }


def _again(number: int) -> str:
    return (
        f'<div itemscope itemtype="https://schema.org/Event"><span itemprop="name">Concert {number}</span>'
        f'<time itemprop="startDate" datetime="2026-05-{number + 10:02}T19:30:00+00:00"></time></div>'
    )


def product(number: int, price: str, rating: str) -> Json:
    return {
        "@id": f"http://shop.example/p/{number}#it",
        "@type": "Product",
        "name": f"Lamp {number}",
        "color": "green" if number % 2 else "grey",
        "offers": {"@type": "Offer", "price": price, "priceCurrency": "EUR"},
        "aggregateRating": {"@type": "AggregateRating", "ratingValue": rating},
    }


def person(site: str, name: str, **more: object) -> Json:
    return {"@id": f"http://{site}/{name.lower()}#it", "@type": "Person", "name": name, **more}


def fill_things(path: Path) -> None:
    """Visited a month ago, but for one page that changed today and one that is new today."""
    now = time.time()
    month = now - 30 * 86400
    pages = {
        **{f"http://events.example/{number}": page_of(event(number), body=_again(number)) for number in range(5)},
        "http://shop.example/p/1": page_of(product(1, "30.00", "4.4")),
        "http://shop.example/p/2": page_of(product(2, "9.50", "4.1"), scheme="https"),
        "http://shop.example/p/3": page_of(product(3, "5.00", "3.1")),
        "http://people.example/ada": page_of(person("people.example", "Ada", jobTitle="keeper")),
        "http://registry.example/ada": page_of(
            person("registry.example", "Ada", sameAs={"@id": "http://people.example/ada#it"}, birthDate="1952-07-21")
        ),
        "http://people.example/ivo": page_of(person("people.example", "Ivo", jobTitle="pianist")),
        "http://broken.example/": '<!doctype html><title>Broken</title><script type="application/ld+json">{"@type":'
        "</script>",
    }
    with Warehouse.open(path, settings=Settings()) as warehouse:
        warehouse.requests.add_seeds(list(pages))
        for href, markup in pages.items():
            store_page(warehouse, href, markup, month)
        store_page(warehouse, "http://shop.example/p/1", page_of(product(1, "25.00", "4.4")), now - 60)
        store_page(warehouse, "http://people.example/uma", page_of(person("people.example", "Uma")), now - 30)
        warehouse.stores.text.commit()
        catalog = warehouse.stores.catalog
        STATISTICS.put_encoded(catalog, Statistics.recounted(warehouse.stores.quads).encode())
        place = "schema:location/schema:address/schema:addressLocality"
        query = f"SELECT ?city (COUNT(*) AS ?events) {{ ?e {place} ?city }} GROUP BY ?city"
        warehouse.subscriptions.save_query(
            SavedQuery(name="by-city", query=query, title="Events by city", saved_at=month)
        )
