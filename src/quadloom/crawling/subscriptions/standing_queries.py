"""Standing queries: asked again when the indexes have changed; a notice reports when the answer has.

The new answer and the notice about it are written in one transaction, so each change of an answer is reported once. A
slow query is asked rarely: it may use a twentieth of the time.

A query that does not parse is refused when it is subscribed (`parse`). A query that begins to fail later, because the
data outgrew its limits, becomes a `StandingQueryFailure`: it is stored, shown with the subscription, published as an
event, and the query is asked again after growing pauses. Until then the last answer stays, so the notice after the
recovery reports everything that changed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from quadloom.errors import QuadloomError, QueryLimit
from quadloom.model.event import Notice
from quadloom.model.subscription import Subscription
from quadloom.process.clock import unix_time
from quadloom.settings import LimitSettings
from quadloom.stores.named_values import NamedValues
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.outbox import Outbox

if TYPE_CHECKING:  # few crawls have standing queries
    from quadloom.asking.sparql.service import QueryService

ROWS = 10_000  # of an answer; a truncated one could not be compared
_NOTICE_ROWS = 1000  # rows in one notice
_PAUSE_FACTOR = 20.0  # pause after an evaluation, relative to the time it took
_SHORTEST_PAUSE = 2.0  # seconds between two evaluations
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


FAILURES = NamedValues("standing-trouble:", StandingQueryFailure)


class StandingQueries:
    """`ask(query)` returns an answer as lines. `write` runs an action in the thread that owns `catalog` and `outbox`;
    there `notice` gets failures and recoveries. Made in that thread: it reads what failed in the last run."""

    def __init__(
        self,
        ask: Callable[[str], list[str]],
        catalog: Catalog,
        outbox: Outbox,
        *,
        write: Write = lambda action: action(),
        clock: Callable[[], float] = unix_time,
        notice: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._ask = ask
        self._catalog = catalog
        self._outbox = outbox
        self._write = write
        self._clock = clock
        self._notice = notice
        self._failures = dict(FAILURES.items(catalog))
        self._queries: dict[str, str] = {}
        self._asked_version: dict[str, int] = {}
        self._next: dict[str, float] = {id: failure.retry_at for id, failure in self._failures.items()}

    def turn(self, queries: Sequence[Subscription], version: int) -> int:
        """Ask the queries that are due. `version` grows whenever the indexes change. Returns how many answers
        changed."""
        changed, clock = 0, self._clock
        for subscription in queries:
            id, began = subscription.id, clock()
            self._reset_if_replaced(subscription)
            if self._asked_version.get(id) == version or began < self._next.get(id, 0.0):
                continue
            try:
                rows = self._ask(subscription.query)
            except QuadloomError as error:
                self._failed(id, error, clock())
                continue
            self._asked_version[id] = version
            self._next[id] = clock() + max(_SHORTEST_PAUSE, _PAUSE_FACTOR * (clock() - began))
            self._recovered(id)
            changed += self._compare(subscription, rows, began)
        return changed

    def _reset_if_replaced(self, subscription: Subscription) -> None:
        """Forget the state of an id that was removed and given to another query."""
        if self._queries.setdefault(subscription.id, subscription.query) != subscription.query:
            self._queries[subscription.id] = subscription.query
            for state in (self._asked_version, self._next, self._failures):
                state.pop(subscription.id, None)

    def _failed(self, id: str, error: QuadloomError, now: float) -> None:
        """Store the failure. After a pause the query is asked again even if no index changed: the limits may have."""
        before = self._failures.get(id)
        attempts = before.attempts + 1 if before is not None else 1
        pause = min(_FIRST_PAUSE * 2.0 ** min(attempts - 1, 20), _LONGEST_PAUSE)
        failure = StandingQueryFailure(
            before.since if before is not None else now, attempts, now + pause, error.message[:500]
        )
        self._failures[id], self._next[id] = failure, failure.retry_at
        self._asked_version.pop(id, None)
        is_new = before is None or before.error != failure.error

        def store() -> None:
            FAILURES.put(self._catalog, id, failure)
            if is_new:
                self._notice(f"the standing query {id} fails: {failure.error}")

        self._write(store)

    def _recovered(self, id: str) -> None:
        if self._failures.pop(id, None) is None:
            return

        def store() -> None:
            FAILURES.put(self._catalog, id, None)
            self._notice(f"the standing query {id} answers again")

        self._write(store)

    def _compare(self, subscription: Subscription, rows: list[str], now: float) -> int:
        catalog = self._catalog
        changed: list[bool] = []

        def store() -> None:
            notice = difference_notice(subscription.id, last_answer(catalog, subscription.id), rows, now)
            if notice is None:
                return
            with catalog.transaction():
                self._outbox.append([notice])
                _ANSWERS.put(catalog, subscription.id, sorted(set(rows)))
            changed.append(True)

        self._write(store)
        return len(changed)


def difference_notice(id: str, before: Sequence[str], after: Sequence[str], now: float) -> Notice | None:
    """The notice about a changed answer; None = the same rows, in any order."""
    old, new = set(before), set(after)
    added, removed = sorted(new - old), sorted(old - new)
    if not added and not removed:
        return None
    more = max(len(added) - _NOTICE_ROWS, 0) + max(len(removed) - _NOTICE_ROWS, 0)
    return Notice(
        at=now,
        subscription=id,
        kind="result",
        added=tuple(added[:_NOTICE_ROWS]),
        removed=tuple(removed[:_NOTICE_ROWS]),
        more=more,
    )


def lines_of(service: QueryService, query: str, limits: LimitSettings) -> list[str]:
    """An answer as lines that can be compared: rows of a SELECT, the result of an ASK, statements of a graph. Raises
    `QueryError`."""
    from quadloom.asking.sparql.checks import check

    form = check(query, limits).form
    bounded = msgspec.structs.replace(limits, query_rows=ROWS)
    with service.ask(query, format=_FORMATS[form], limits=bounded, client="standing", fresh=True) as answer:
        # Not `splitlines`: a literal may hold U+2028, and only line feeds are escaped in all three formats.
        lines = [line.rstrip("\r") for line in answer.read().decode("utf-8", "replace").split("\n") if line]
        if answer.truncated:
            raise QueryLimit(
                f"the answer has more than {ROWS} rows, or more bytes than limits.query_result_bytes",
                hint="make the answer smaller: count rows, or select fewer",
            )
    return lines[1:] if form == "select" else lines


def parse(service: QueryService, query: str, limits: LimitSettings) -> None:
    """Raises `QueryError` if no query process can answer it. The query runs on no data, in a child process: the parser
    is recursive, and deep nesting crashes it."""
    from quadloom.asking.sparql.checks import check
    from quadloom.asking.sparql.prefixes import PREFIXES
    from quadloom.asking.sparql.worker import QueryRequest

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


def ask_again(catalog: Catalog, queries: Sequence[Subscription], ask: Callable[[str], list[str]]) -> None:
    """Replace stored answers by those of now, without notices: what they were compared with is to be forgotten. A query
    that fails has none until it is asked again."""
    for subscription in (item for item in queries if _ANSWERS.get(catalog, item.id) is not None):
        try:
            rows = sorted(set(ask(subscription.query)))
        except QuadloomError:
            rows = None
        _ANSWERS.put(catalog, subscription.id, rows)


def last_answer(catalog: Catalog, id: str) -> list[str]:
    return _ANSWERS.get(catalog, id) or []


def failure_of(catalog: Catalog, id: str) -> StandingQueryFailure | None:
    """None = the query succeeds, or was not asked yet."""
    return FAILURES.get(catalog, id)


def forget(catalog: Catalog, id: str) -> None:
    """Delete the state of a removed subscription; another one may get its id."""
    _ANSWERS.put(catalog, id, None)
    FAILURES.put(catalog, id, None)
