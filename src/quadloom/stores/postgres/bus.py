"""The bus of many machines: a short table of events, and LISTEN/NOTIFY to wake followers.

`publish` only appends to a bounded ring in memory; a thread writes its content to the table, so that neither a slow nor
an absent server delays a crawl: events that cannot be written in time are dropped, the oldest first. The notification
carries no data, it only ends the wait. A writer holds a lock until its commit, so that the numbers of rows become
visible in order and a follower misses nothing that is still in the table.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator, Sequence

from quadloom.errors import StoreError
from quadloom.model.event import Event
from quadloom.model.wire import decode, encode
from quadloom.stores.postgres.arrays import columns
from quadloom.stores.postgres.database import PostgresDatabase

_BATCH_SECONDS = 0.1  # in which events become one batch
_WAIT = 1.0  # seconds after which a follower reads without a notification
_READ = 1000
_MANY = ("settled", "page", "finding", "heartbeat")  # kinds of which there is at least one for each page


class PostgresBus:
    """See `quadloom.stores.protocols.bus.Bus`. Every follower opens its own connection to `url`."""

    def __init__(self, url: str, *, kept: int = 10_000) -> None:
        self._url = url
        self._kept = kept
        self._ring: deque[Event] = deque(maxlen=kept)
        self._database = PostgresDatabase.open(url, patience=1.0)
        self._sending = threading.Lock()
        self._news = threading.Event()
        self._closed = threading.Event()
        self._sender = threading.Thread(target=self._send, name="bus", daemon=True)
        self._sender.start()

    def publish(self, events: Sequence[Event]) -> None:
        self._ring.extend(events)
        self._news.set()

    def follow(self, after: int = 0) -> Iterator[Event]:
        database = PostgresDatabase.open(self._url)
        try:
            database.listen(_channel(database))
            last = 0
            while True:
                closed = self._closed.is_set()
                self._flush()
                rows = database.execute(
                    "SELECT seq, record FROM event WHERE seq > %s AND id > %s ORDER BY seq LIMIT %s",
                    (last, after if last == 0 else -1, _READ),
                )
                for seq, record in rows:
                    last = seq
                    yield decode(record, Event)
                if not rows and closed:
                    return
                if not rows:
                    database.wait(_WAIT)
        finally:
            database.close()

    def recent(self, after: int = 0, limit: int = 1000) -> list[Event]:
        self._flush()
        rows = self._database.execute(
            "SELECT record FROM (SELECT seq, record FROM event WHERE id > %s ORDER BY seq DESC LIMIT %s) newest "
            "ORDER BY seq",
            (after, limit),
        )
        return [decode(row[0], Event) for row in rows]

    def close(self) -> None:
        """Listeners get what is still in the table and then end."""
        self._flush()
        self._closed.set()
        self._news.set()
        self._sender.join(timeout=10.0)
        with contextlib.suppress(StoreError):  # then followers notice within a second
            self._database.execute("SELECT pg_notify(%s, '')", (_channel(self._database),))
        self._database.close()

    def _send(self) -> None:
        while not self._closed.is_set():
            self._news.wait()
            self._news.clear()
            self._closed.wait(_BATCH_SECONDS)
            self._flush()

    def _flush(self) -> None:
        """Write the ring to the table. If the server cannot be reached, these events are lost; nobody waits."""
        with self._sending:
            if self._closed.is_set():
                return
            events = [self._ring.popleft() for _ in range(len(self._ring))]
            if not events:
                return
            try:
                with self._database.transaction():
                    self._database.execute(
                        "SELECT pg_advisory_xact_lock(hashtext('quadloom events'), hashtext(current_schema()))"
                    )
                    self._database.write(
                        "INSERT INTO event(id, record, settled) SELECT f, r, s = 1 FROM unnest(%s::bigint[], "
                        "%s::bytea[], %s::smallint[]) AS w(f, r, s)",
                        columns("qyh", [(event.id, encode(event), event.kind in _MANY) for event in events]),
                    )
                    # Pages come by the thousand; what a person should see stays a hundred times as long.
                    self._database.write(
                        "DELETE FROM event WHERE settled AND seq <= (SELECT max(seq) FROM event) - %s", (self._kept,)
                    )
                    self._database.write(
                        "DELETE FROM event WHERE seq <= (SELECT max(seq) FROM event) - %s", (100 * self._kept,)
                    )
                    self._database.execute("SELECT pg_notify('quadloom_' || current_schema(), '')")
            except StoreError:
                return


def _channel(database: PostgresDatabase) -> str:
    """One per schema: several warehouses may share a database."""
    return str(database.execute("SELECT 'quadloom_' || current_schema()")[0][0])
