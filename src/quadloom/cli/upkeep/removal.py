"""`quadloom forget`: remove pages and sites for good."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from quadloom.cli.progress import Progress, known_pages
from quadloom.cli.session import session
from quadloom.cli.words import counted, size
from quadloom.errors import UsageError
from quadloom.maintenance.removal.forget import plan
from quadloom.maintenance.removal.requests import REQUESTS, ForgetReport, rules_of
from quadloom.model.timestamps import iso_time

Where = Annotated[
    tuple[str, ...],
    Parameter(help="a pattern of the scope, such as 'https://example.org/people/*' or 're:…'; may be repeated"),
]


def forget(*names: str, where: Where = (), dry_run: bool = False) -> None:
    """Remove pages or whole sites for good, as their owner or the law demands, and never visit them again.

    They leave database, archive, indexes, lake, notices and queue. Archive files are written again without their
    records, and indexes in folders are rebuilt. No crawl may run at the same time. If forget is killed, run it again:
    without arguments it finishes what is left, and otherwise lists what was forgotten. Backups, exports and a lake in
    another place than stores.lake are not changed. To allow visits again: `quadloom scope remove`.

    Parameters
    ----------
    names
        URLs of pages, and sites with all their subdomains, such as example.org
    dry_run
        only print how many pages, records and files would be removed; works during a crawl
    """
    s = session()
    rules = rules_of(names, where)
    if dry_run:
        if not rules:
            raise UsageError("there is nothing to look for", hint="name URLs, sites or --where PATTERN")
        with s.read() as warehouse:
            found = plan(warehouse.stores, rules)
        s.report({"dry_run": True, **_numbers(found)}, f"would remove {_in_words(found)}")
        return
    with s.open() as warehouse, Progress(s, "rebuild", total=known_pages(warehouse)) as progress:
        reports = warehouse.maintenance.forget(rules, progress=progress.show)
        done = [request.report for _, request in REQUESTS.items(warehouse.stores.catalog)]
    if s.json:
        s.emit({"forgotten": [_numbers(report) for report in reports or done]})
        return
    for report in reports:
        s.say(f"removed {_in_words(report)}")
    if reports:
        s.say("backups and exports still have what they had: remove those that were made before")
    else:
        for report in done:
            s.write(f"{iso_time(report.asked_at)}\tremoved {_in_words(report)}")
        if not done:
            s.say("nothing was forgotten yet\nhint: name URLs, sites or --where PATTERN")


def _numbers(report: ForgetReport) -> dict[str, object]:
    times = {"asked_at": iso_time(report.asked_at), "done_at": iso_time(report.done_at)} if report.asked_at else {}
    return {**msgspec.structs.asdict(report), **times}


def _in_words(report: ForgetReport) -> str:
    return (
        f"{counted(report.pages, 'page')}, and {counted(report.records, 'record')} ({size(report.bytes)}) from "
        f"{counted(report.files, 'file')} of the archive"
    )
