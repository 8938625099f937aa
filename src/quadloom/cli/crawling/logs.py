"""`quadloom logs`: the events of a running crawl, or of all workers of a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack, closing

import msgspec

from quadloom.cli.session import Session, session
from quadloom.crawling.run.control import ask
from quadloom.errors import StoreUnavailable, UsageError
from quadloom.model.event import Event
from quadloom.stores.backends import open_cluster

_POLL_SECONDS = 0.5  # with --follow
_MAX_EVENTS = 10_000  # read at once


def logs(
    *,
    follow: bool = False,
    pages: bool = False,
    worker: str = "",
    limit: int = 100,
) -> None:
    """Print the events of a running crawl, or of all workers of a cluster: notices, shards, pauses, failures.

    Parameters
    ----------
    follow
        also print new events, until interrupted
    pages
        also print a line for each page that was read
    worker
        only events of the worker with this name
    limit
        number of past events to print
    """
    s = session()
    with ExitStack() as opened:
        read = _reader(s, opened, pages)
        last = 0
        events = read(last)
        while True:
            shown = [event for event in events if not worker or event.data.get("worker") == worker]
            for event in shown if last else shown[-limit:]:
                _print(s, event)
            last = max((event.id for event in events), default=last)
            if not follow:
                return
            time.sleep(_POLL_SECONDS)
            try:
                events = read(last)
            except StoreUnavailable as error:
                s.say(error.message)  # the database may come back
                events = []


def _reader(s: Session, opened: ExitStack, pages: bool) -> Callable[[int], list[Event]]:
    """A function that returns events after an id."""
    if s.settings.stores.is_shared:
        reader = opened.enter_context(closing(open_cluster(s.settings)))
        return lambda after: reader.events(after, _MAX_EVENTS, settled=pages)

    def ask_crawl(after: int) -> list[Event]:
        answer = ask(s.warehouse, "events", after=after)
        if answer is None and not after:
            raise UsageError(
                f"no crawl is running on {s.warehouse}", hint="events are kept while a crawl runs: `quadloom crawl`"
            )
        events = msgspec.convert(answer, list[Event]) if isinstance(answer, list) else []
        return [event for event in events if pages or event.kind != "settled"]

    return ask_crawl


def _print(s: Session, event: Event) -> None:
    if s.json:
        s.emit(event)
        return
    at = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event.at))
    worker = event.data.get("worker", "")
    details = [str(event.data[name]) for name in ("outcome", "status", "reason") if event.data.get(name)]
    s.write("\t".join([at, *([str(worker)] if worker else []), event.kind, event.subject, *details]))
