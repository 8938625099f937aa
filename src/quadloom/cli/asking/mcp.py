"""`quadloom mcp`: the warehouse for an agent on this machine, over standard input and output."""

from __future__ import annotations

import asyncio

from quadloom.asking.sparql.frames import require
from quadloom.cli.session import session
from quadloom.errors import StoreError
from quadloom.maintenance.recovery.lost_database import refuse_lost_database
from quadloom.stores.backends import exists
from quadloom.web.server.state import SiteState


def mcp(*, control: bool = False) -> None:
    """Let an agent search and query the warehouse by the Model Context Protocol, over standard input and output.

    The same tools are at /mcp of `quadloom serve`. Every row of an answer names page, time of the visit and archived
    record. To add it to an agent: the command is `quadloom -w DIR mcp`.

    Parameters
    ----------
    control
        the agent may also pause, resume and stop a running crawl
    """
    s = session()
    refuse_lost_database(s.warehouse, s.settings)
    if not exists(s.warehouse, s.settings):
        raise StoreError(
            f"there is no warehouse at {s.warehouse}", hint="to create one: `quadloom crawl URL` or `quadloom demo`"
        )
    require("mcp", "pip install 'quadloom[mcp]'")
    from quadloom.web.mcp.server import create_server

    site = SiteState(s.warehouse, s.settings)
    try:
        asyncio.run(create_server(site, may_control=(lambda _context: None) if control else None).run_stdio_async())
    finally:
        site.close()
