"""Standing queries: asked again when the indexes have changed, and told of when the answer has.

The last answer and the notice about the new one are written in one transaction, so each change of an answer is told
once. A query that takes long is asked rarely: it may use a twentieth of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from quadloom.asking.sparql import QueryService, form_of
from quadloom.errors import QueryError
from quadloom.model.notice import Notice
from quadloom.model.wire import decode, encode
from quadloom.scheduling.subscriptions import Subscription
from quadloom.settings import Limits
from quadloom.stores.outbox import Outbox
from quadloom.stores.protocols import Catalog

ROWS = 10_000  # of an answer that is compared; the rest is cut by the query's own limit
_TOLD = 1000  # rows in one notice
_PART_OF_TIME = 20.0
_OFTEN = 2.0  # seconds between two evaluations at least


class Standing:
    """`ask(query)` gives an answer as lines."""

    def __init__(self, ask: Callable[[str], list[str]]) -> None:
        self._ask = ask
        self._seen: dict[str, int] = {}
        self._next: dict[str, float] = {}

    def turn(
        self,
        queries: Sequence[Subscription],
        catalog: Catalog,
        outbox: Outbox,
        version: int,
        write: Callable[[Callable[[], None]], None],
        clock: Callable[[], float],
    ) -> int:
        """Ask what is due. `version` grows whenever the indexes change; `write` does something in the thread that
        owns the stores. Returns how many answers had changed."""
        changed = 0
        for subscription in queries:
            began = clock()
            if self._seen.get(subscription.id) == version or began < self._next.get(subscription.id, 0.0):
                continue
            try:
                rows = self._ask(subscription.query)
            except QueryError:
                rows = None  # over its limits for now; asked again after the pause, the last answer stands
            self._seen[subscription.id] = version
            self._next[subscription.id] = clock() + max(_OFTEN, _PART_OF_TIME * (clock() - began))
            if rows is not None:
                changed += self._compare(subscription, rows, catalog, outbox, write, began)
        return changed

    @staticmethod
    def _compare(
        subscription: Subscription,
        rows: list[str],
        catalog: Catalog,
        outbox: Outbox,
        write: Callable[[Callable[[], None]], None],
        now: float,
    ) -> int:
        told: list[bool] = []

        def settle() -> None:
            name = f"standing:{subscription.id}"
            stored = catalog.get(name)
            notice = difference_notice(subscription.id, decode(stored, list[str]) if stored else [], rows, now)
            if notice is None:
                return
            with catalog.transaction():
                outbox.append([notice])
                catalog.put(name, encode(sorted(set(rows))))
            told.append(True)

        write(settle)
        return len(told)


def difference_notice(id: str, before: Sequence[str], after: Sequence[str], now: float) -> Notice | None:
    """None = the same rows, in whatever order."""
    old, new = set(before), set(after)
    added, removed = sorted(new - old), sorted(old - new)
    if not added and not removed:
        return None
    more = max(len(added) - _TOLD, 0) + max(len(removed) - _TOLD, 0)
    return Notice(
        at=now, subscription=id, kind="result", added=tuple(added[:_TOLD]), removed=tuple(removed[:_TOLD]), more=more
    )


def lines_of(service: QueryService, query: str, limits: Limits) -> list[str]:
    """An answer as lines that can be compared: rows of a SELECT, the verdict of an ASK, statements of a graph."""
    form = form_of(query, limits)
    bounded = msgspec.structs.replace(limits, query_rows=ROWS)
    format = {"select": "tsv", "ask": "csv", "graph": "nt"}[form]
    with service.ask(query, format=format, limits=bounded, client="standing") as answer:
        lines = answer.read().decode("utf-8", "replace").splitlines()
    return lines[1:] if form == "select" else lines
