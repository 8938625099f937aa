"""`quadloom upgrade`: make anew what an older version has made."""

from __future__ import annotations

import time

import msgspec

from quadloom.cli.progress import Progress, known_pages, waiting
from quadloom.cli.session import session
from quadloom.cli.words import counted, size
from quadloom.errors import StoreError
from quadloom.maintenance.recovery.upgrade import UpgradePlan, outdated, plan
from quadloom.warehouse import Warehouse


def upgrade(*, dry_run: bool = False) -> None:
    """Rebuild the indexes from the archive if an older version of Quadloom has made them.

    It first says how long that takes and how much room it needs, measured on some of the pages. The new indexes are
    filled beside the old ones: search, sparql and serve go on with those until all is done; a crawl must wait. If
    upgrade is killed, run it again: it continues, unless a crawl has written to the warehouse in between.

    Parameters
    ----------
    dry_run
        only say what is old, and what upgrading would take
    """
    s = session()
    with s.read() as warehouse:
        old = outdated(warehouse.stores)
    if not old:
        s.report(UpgradePlan(), "nothing to upgrade: everything was made by this version")
        return
    with Warehouse.repair(s.warehouse, settings=s.settings) as warehouse:
        with waiting(s, "measuring on some pages …"):
            found = plan(warehouse.stores)
        s.say(
            f"{' and '.join(found.old)}: {counted(found.pages, 'page')} to index again, "
            f"about {_minutes(found.seconds)}; needs {size(found.bytes)}, {size(found.free_bytes)} are free"
        )
        if dry_run:
            if s.json:
                s.emit(found)
            return
        if found.free_bytes < found.bytes:
            raise StoreError(
                f"there is no room for the new indexes in {s.warehouse}", hint="free some space and run it again"
            )
        began = time.monotonic()
        with Progress(s, "upgrade", total=known_pages(warehouse)) as progress:
            warehouse.maintenance.rebuild(links=False, resume=True, progress=progress.show)
        seconds = time.monotonic() - began
    s.report({**msgspec.structs.asdict(found), "took": seconds}, f"upgraded in {_minutes(seconds)}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
