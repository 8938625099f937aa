"""Standing queries: asked again when the indexes have changed, and told of when the answer has.

The last answer and the notice about the new one are written in one transaction, so each change of an answer is told
once. A query that takes long is asked rarely: it may use a twentieth of the time.

A query that does not parse is refused when it is subscribed (`parse`). One that begins to fail later, because the data
outgrew its limits, becomes a `StandingQueryFailure`: durable, shown with the subscription, told as an event, and asked
again with growing pauses. Meanwhile the last answer stands, so the notice after its recovery tells of all that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from quadloom.asking.sparql.checks import check
from quadloom.asking.sparql.prefixes import PREFIXES
from quadloom.asking.sparql.service import QueryService
from quadloom.asking.sparql.worker import QueryRequest
from quadloom.errors import QuadloomError, QueryLimit
from quadloom.model.notice import Notice
from quadloom.model.subscription import Subscription
from quadloom.settings import LimitSettings
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Outbox

ROWS = 10_000  # of an answer; a part of a larger one could not be compared
_TOLD = 1000  # rows in one notice
_PART_OF_TIME = 20.0
_OFTEN = 2.0  # seconds between two evaluations at least
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 6 * 3600.0
_PARSE_SECONDS = 10.0
_ANSWERS = NamedValues("standing:", list[str])
_FORMATS = {"select": "tsv", "ask": "csv", "graph": "nt"}

Write = Callable[[Callable[[], None]], None]


class StandingQueryFailure(msgspec.Struct, frozen=True):
    """A standing query that fails. `since`: unix time of the first failure in a row."""

    since: float
    attempts: int
    retry_at: float
    error: str


TROUBLES = NamedValues("standing-trouble:", StandingQueryFailure)


class StandingQueries:
    """`ask(query)` gives an answer as lines; `troubles`: of the last run; `tell` hears of failures and recoveries."""

    def __init__(
        self,
        ask: Callable[[str], list[str]],
        troubles: dict[str, StandingQueryFailure] | None = None,
        tell: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._ask = ask
        self._troubles = dict(troubles or {})
        self._tell = tell
        self._queries: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        self._next: dict[str, float] = {id: trouble.retry_at for id, trouble in self._troubles.items()}

    def turn(
        self,
        queries: Sequence[Subscription],
        catalog: Catalog,
        outbox: Outbox,
        version: int,
        write: Write,
        clock: Callable[[], float],
    ) -> int:
        """Ask what is due. `version` grows whenever the indexes change; `write` does something in the thread that
        owns the stores. Returns how many answers had changed."""
        changed = 0
        for subscription in queries:
            id, began = subscription.id, clock()
            self._notice_replacement(subscription)
            if self._seen.get(id) == version or began < self._next.get(id, 0.0):
                continue
            try:
                rows = self._ask(subscription.query)
            except QuadloomError as error:
                self._failed(id, error, catalog, write, clock())
                continue
            self._seen[id] = version
            self._next[id] = clock() + max(_OFTEN, _PART_OF_TIME * (clock() - began))
            self._recovered(id, catalog, write)
            changed += self._compare(subscription, rows, catalog, outbox, write, began)
        return changed

    def _notice_replacement(self, subscription: Subscription) -> None:
        """An id that was removed and given to another query begins anew."""
        if self._queries.setdefault(subscription.id, subscription.query) != subscription.query:
            self._queries[subscription.id] = subscription.query
            for memory in (self._seen, self._next, self._troubles):
                memory.pop(subscription.id, None)

    def _failed(self, id: str, error: QuadloomError, catalog: Catalog, write: Write, now: float) -> None:
        """Asked again after the pause even where the indexes do not change: the limits may have."""
        before = self._troubles.get(id)
        attempts = before.attempts + 1 if before is not None else 1
        pause = min(_FIRST_PAUSE * 2.0 ** min(attempts - 1, 20), _LONGEST_PAUSE)
        trouble = StandingQueryFailure(
            before.since if before is not None else now, attempts, now + pause, error.message[:500]
        )
        self._troubles[id], self._next[id] = trouble, trouble.retry_at
        self._seen.pop(id, None)
        is_news = before is None or before.error != trouble.error

        def settle() -> None:
            TROUBLES.put(catalog, id, trouble)
            if is_news:
                self._tell(f"the standing query {id} fails: {trouble.error}")

        write(settle)

    def _recovered(self, id: str, catalog: Catalog, write: Write) -> None:
        if self._troubles.pop(id, None) is None:
            return

        def settle() -> None:
            TROUBLES.put(catalog, id, None)
            self._tell(f"the standing query {id} answers again")

        write(settle)

    @staticmethod
    def _compare(
        subscription: Subscription, rows: list[str], catalog: Catalog, outbox: Outbox, write: Write, now: float
    ) -> int:
        told: list[bool] = []

        def settle() -> None:
            notice = difference_notice(subscription.id, last_answer(catalog, subscription.id), rows, now)
            if notice is None:
                return
            with catalog.transaction():
                outbox.append([notice])
                _ANSWERS.put(catalog, subscription.id, sorted(set(rows)))
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


def lines_of(service: QueryService, query: str, limits: LimitSettings) -> list[str]:
    """An answer as lines that can be compared: rows of a SELECT, the verdict of an ASK, statements of a graph. Raises
    `QueryError`."""
    form = check(query, limits).form
    bounded = msgspec.structs.replace(limits, query_rows=ROWS)
    with service.ask(query, format=_FORMATS[form], limits=bounded, client="standing", fresh=True) as answer:
        # Not `splitlines`: a literal may hold U+2028, and only line feeds are escaped in all three formats.
        lines = [line.rstrip("\r") for line in answer.read().decode("utf-8", "replace").split("\n") if line]
        if answer.truncated:
            raise QueryLimit(
                f"the answer has more than {ROWS} rows, or more bytes than limits.query_result_bytes",
                hint="watch a smaller one: count, or select what matters",
            )
    return lines[1:] if form == "select" else lines


def parse(service: QueryService, query: str, limits: LimitSettings) -> None:
    """Raises `QueryError` for what no query process can answer. Asked of no data at all, in a process that may die: the
    parser recurses, and deep nesting ends it."""
    checked = check(query, limits)
    request = QueryRequest(
        query=checked.text,
        written=checked.text,
        format=_FORMATS[checked.form],
        prefixes=PREFIXES,
        rows=1,
        seconds=min(limits.query_seconds, _PARSE_SECONDS),
        data=b"",
    )
    with service.run(request, checked.form, client="standing") as answer:
        answer.read()


def last_answer(catalog: Catalog, id: str) -> list[str]:
    return _ANSWERS.get(catalog, id) or []


def trouble_of(catalog: Catalog, id: str) -> StandingQueryFailure | None:
    """None = the query answers, or was not asked yet."""
    return TROUBLES.get(catalog, id)


def troubles(catalog: Catalog) -> dict[str, StandingQueryFailure]:
    return dict(TROUBLES.items(catalog))


def forget(catalog: Catalog, id: str) -> None:
    """The subscription was removed; another one may get its id."""
    _ANSWERS.put(catalog, id, None)
    TROUBLES.put(catalog, id, None)
