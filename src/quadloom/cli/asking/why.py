"""`quadloom why URL`: every number that decides about a URL, and the rule behind it."""

from __future__ import annotations

import msgspec

from quadloom.cli.session import session
from quadloom.crawl.control import ask
from quadloom.crawl.explain import Why
from quadloom.warehouse import Warehouse


def why(url: str) -> None:
    """Explain a URL: scope, robots.txt, place in the frontier, change rate, weight, price of a read, next visit.

    Parameters
    ----------
    url
        the page in question
    """
    s = session()
    answer = ask(s.warehouse, "why", url=url)
    if answer is not None:
        explained = msgspec.convert(answer, Why)
    else:
        with Warehouse.read(s.warehouse, settings=s.settings) as warehouse:
            explained = warehouse.requests.why(url)
    if s.json:
        s.emit(explained)
        return
    s.say(f"{explained.url} is {explained.state}")
    s.table(
        ["part", "what", "value", "rule"],
        [(reason.part, reason.what, reason.value, reason.rule) for reason in explained.reasons],
    )
