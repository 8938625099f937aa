"""The unit of partition: a site belongs to one of 256 shards, fixed forever, because stored rows carry the number.

By site and not by host, since links, robots habits and budgets are shared within a registered domain, and four of
five links stay in it. 256 is enough to share fairly among some tens of workers and little enough to lease all in one
statement. CRC-32, because it is the same in every language that may ever read the tables.
"""

from __future__ import annotations

import secrets
import socket
from functools import lru_cache
from pathlib import Path
from zlib import crc32

from quadloom.errors import QueryRefused
from quadloom.model.url import host_of, site_of

SHARDS = 256


@lru_cache(maxsize=65536)
def shard_of(host: str) -> int:
    return crc32(site_of(host).encode()) % SHARDS


def server_number(graph: str, servers: int) -> int:
    """Which of several SPARQL servers has this page, from 0 to `servers` - 1."""
    return shard_of(host_of(graph)) * servers // SHARDS


def is_page_graph(graph: str) -> bool:
    """Whether all of a graph is on one server. Others, such as that of descriptions, have parts on all of them."""
    return graph.startswith(("http://", "https://"))


def join_refused(reason: str) -> QueryRefused:
    """The error for a query that needs the graphs of several servers together."""
    return QueryRefused(
        f"the quads are on several servers: {reason}",
        hint="ask for pages one by one, as in SELECT * { GRAPH ?page { … } }, which each server answers for its pages; "
        "ask everything together with `quadloom lake query`",
    )


def worker_name(path: Path) -> str:
    """The name of the worker in this directory for all others: the machine's name and a random part, chosen once."""
    file = path / "worker"
    if not file.exists():
        host = "".join(sign for sign in socket.gethostname() if sign.isascii() and sign.isalnum())[:40]
        file.write_text(f"{host or 'worker'}-{secrets.token_hex(3)}\n", encoding="utf-8")
    return file.read_text(encoding="utf-8").strip()
