"""Queries of users: where they are evaluated, and what an engine needs to know about one."""

from __future__ import annotations

import msgspec


class SparqlServer(msgspec.Struct, frozen=True, kw_only=True):
    """The addresses of a SPARQL 1.1 server and its peculiarities. Holds no secret, so it may be on a command line.

    `union`: parameters that make the union of all graphs the default graph. `timeout`: parameters that end a user's
    query. `seconds`: longest silence.
    """

    query: str
    update: str
    graph_store: str = ""
    union: str = ""
    timeout: str = ""
    user: str = ""
    seconds: float = 60.0
    most_bytes: int = 256 * 1024 * 1024  # of a response that is read as a whole


class QuerySource(msgspec.Struct, frozen=True):
    """Where queries are evaluated: the folder of an embedded store, or the servers that have the graphs."""

    folder: str = ""
    servers: tuple[SparqlServer, ...] = ()

    @property
    def is_local(self) -> bool:
        return not self.servers


class ServerChoice(msgspec.Struct, frozen=True):
    """Which of several servers answer a query. `server`: the only one to ask; None = all of them, and their solutions
    are put one after another. `limit`: most solutions, 0 = no limit. `distinct`: each solution once."""

    server: int | None = None
    limit: int = 0
    distinct: bool = False


class StoreQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A checked query. `union`: the default graph is the union of all graphs. Given graphs are the dataset instead.

    `prefixes`: known without PREFIX lines; a query for servers declares what it uses. `data`: evaluate the query on
    these N-Quads, not on the store. `fresh`: see everything committed by now, not the view of up to two seconds ago.
    """

    query: str
    prefixes: dict[str, str]
    union: bool = True
    default_graphs: tuple[str, ...] = ()
    named_graphs: tuple[str, ...] = ()
    data: bytes | None = None
    fresh: bool = False
    choice: ServerChoice = ServerChoice(server=0)
