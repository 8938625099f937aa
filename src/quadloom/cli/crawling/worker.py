"""`quadloom worker`: one of many machines that crawl together."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from quadloom.cli.crawling.crawl import finish, follow, require_contact
from quadloom.cli.session import session
from quadloom.errors import UsageError
from quadloom.warehouse import Warehouse


def worker(
    *,
    cluster: str | None = None,
    forever: Annotated[bool, Parameter(negative="")] = False,
    max_seconds: float | None = None,
) -> int:
    """Take a fair share of the sites of a shared warehouse and crawl them, until stopped.

    Parameters
    ----------
    cluster
        the database that all workers share, postgresql://user@host:5432/database [default: stores.frontier]
    forever
        also keep what is known fresh, within freshness.bandwidth
    max_seconds
        stop after so many seconds
    """
    s = session()
    if cluster is not None and not cluster.startswith("postgresql://"):
        raise UsageError(
            "--cluster takes the address of a PostgreSQL database",
            hint="write postgresql://user@host:5432/database; the password belongs into ~/.pgpass or PGPASSWORD",
        )
    address = {"stores.frontier": cluster, "stores.catalog": "postgresql:"} if cluster is not None else {}
    s.override({**address, "crawl.max_seconds": max_seconds})
    with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
        require_contact(s, warehouse, [])
        running = warehouse.work(forever=forever, notice=s.say)
        report, interrupted = follow(s, running)
    return finish(s, report, interrupted, None)
