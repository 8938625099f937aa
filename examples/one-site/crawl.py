"""Crawl one site and print what it describes: python crawl.py https://example.org/ you@example.org

Everything is stored in ./one-site-data. Run it again to continue where it stopped.
"""

from __future__ import annotations

import sys

import quadloom
from quadloom.settings.loading import load

TYPES = "SELECT ?type (COUNT(DISTINCT ?thing) AS ?n) WHERE { ?thing a ?type } GROUP BY ?type ORDER BY DESC(?n) LIMIT 10"


def main(url: str, contact: str) -> None:
    settings = load(overrides={"crawl.contact": contact}).settings
    with quadloom.open("one-site-data", settings=settings) as warehouse:
        for settlement in warehouse.crawl([url], max_pages=200):
            print(settlement.outcome, settlement.visit.href)
        print("\nWhat the pages describe:")
        for row in warehouse.sparql(TYPES).values():
            print(f"  {row[1]:>5}  {row[0]}")


if __name__ == "__main__":
    main(*sys.argv[1:3])
