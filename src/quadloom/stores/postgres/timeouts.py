"""Limits of time: no server, and nothing between it and this process, keeps a thread waiting for ever."""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol
from weakref import WeakSet

# In effect unless the URL says otherwise: a host that vanished is noticed within half a minute.
_NETWORK = {
    "connect_timeout": 10,
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 30_000,  # milliseconds
}
_GRACE = 10.0  # seconds after the limit of a statement, until the connection is cut


def network(url: str) -> dict[str, Any]:
    """Limits of time that the URL does not set itself."""
    from psycopg import conninfo

    given = conninfo.conninfo_to_dict(url)
    return {name: value for name, value in _NETWORK.items() if name not in given}


class Watched(Protocol):
    """A database. `busy_since`: monotonic; 0 = no statement is in progress."""

    busy_since: float
    statement_seconds: float

    def cut(self) -> None: ...


class ConnectionWatch:
    """Cuts connections on which a statement has been in progress for too long: then neither the server's own limit nor
    TCP has ended it, because something between the two is alive and silent. One thread for all databases, started
    with the first."""

    def __init__(self) -> None:
        self._databases: WeakSet[Watched] = WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def add(self, database: Watched) -> None:
        with self._lock:
            self._databases.add(database)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="database watch", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(1.0)
            now = time.monotonic()
            with self._lock:
                watched = list(self._databases)
            for database in watched:
                since = database.busy_since
                if since and now - since > database.statement_seconds + _GRACE:
                    database.cut()


watch = ConnectionWatch()
