"""The graph of an archived version of a page, transformed again in a child process.

The transform is a pure function, so versions come out as they were indexed then. An archived page is as hostile as a
new one, and its readers are a web server and the owner of a crawl. So neither parses it: a transform worker does, with
the deadline and memory cap of the crawl's workers. It starts with the first version, serves all threads of this process
one after the other, and ends when it was idle for `_IDLE_SECONDS`.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from functools import lru_cache

import msgspec

from quadloom.asking.changes.versions import VersionGraph
from quadloom.crawling.workers.messages import WORKER, ServicesWanted, WorkerAnswer, WorkerMessage, WorkerTask
from quadloom.model import wire
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Page
from quadloom.model.quads import Quads
from quadloom.model.url import host_of
from quadloom.model.visit import Visit
from quadloom.process.channel import ChildProcess, start
from quadloom.process.limits import ChildExit
from quadloom.process.request_child import ChildEnded, RequestChild
from quadloom.settings import Settings
from quadloom.stores.protocols.archive import Archive

_IDLE_SECONDS = 30.0
_START_SECONDS = 30.0  # a loaded machine may need long to import the parsers; no page is to blame for that
_FAILURES = 1000  # versions remembered as harmful, so that each costs one deadline and not one for every reader


class ArchivedVersions:
    """The versions in an archive: a `VersionReader`. All with equal settings share one process."""

    def __init__(self, archive: Archive, settings: Settings) -> None:
        self._archive = archive
        self._settings = wire.encode(settings)

    def graph(self, ref: ArchiveRef) -> VersionGraph:
        page = self._archive.get(ref)
        if not isinstance(page, Page):
            return VersionGraph(Quads.of("", b""))  # a redirect or an error states nothing
        return _transformer(self._settings).graph(ref, page)


@lru_cache(maxsize=4)
def _transformer(settings: bytes) -> _VersionTransformer:
    return _VersionTransformer(wire.decode(settings, Settings))


def _unknown(page: Page, failure: str) -> VersionGraph:
    return VersionGraph(Quads.of(page.final_url, b""), failure)


class _VersionTransformer:
    """One worker at a time. Safe for many threads."""

    def __init__(self, settings: Settings) -> None:
        # No link strategies: the links of an old version lead nowhere.
        self._settings = msgspec.structs.replace(settings, crawl=msgspec.structs.replace(settings.crawl, strategies=[]))
        self._numbers = itertools.count()
        self._lock = threading.Lock()
        self._child = RequestChild(self._start, ready_seconds=_START_SECONDS)
        self._idle: threading.Timer | None = None
        self._failures: OrderedDict[ArchiveRef, str] = OrderedDict()

    def graph(self, ref: ArchiveRef, page: Page) -> VersionGraph:
        with self._lock:
            failure = self._failures.get(ref, "")
            if failure:
                return _unknown(page, failure)
            graph = self._transform(ref, page)
            self._end_when_idle()
            return graph

    def _start(self) -> ChildProcess:
        # Twice the memory as address space: libraries map more than they touch.
        return start(WORKER, self._settings, address_space=self._settings.limits.transform_bytes * 2)

    def _transform(self, ref: ArchiveRef, page: Page) -> VersionGraph:
        visit = Visit(page.url, page.url, host_of(page.url), 0)
        task = WorkerTask(next(self._numbers), visit, page, archive=False)
        try:
            content = self._ask(task)
            if isinstance(content, ServicesWanted):
                from quadloom.crawling.workers.services.client import ask_now  # few pages have services

                answers = ask_now(self._settings, page.body, content.requests)
                content = self._ask(msgspec.structs.replace(task, answers=answers))
        except ChildEnded as ended:
            if ended.exit is None:
                return _unknown(page, "the process that transforms it did not start")
            return _unknown(page, self._failure(ref, ended.exit))
        if isinstance(content, ServicesWanted):
            return _unknown(page, "its services were not asked")
        text = content.result.text
        return VersionGraph(content.result.quads, text=f"{text.title}\n{text.body}" if text is not None else "")

    def _ask(self, task: WorkerTask) -> WorkerAnswer | ServicesWanted:
        return self._child.ask(task, WorkerMessage, seconds=self._settings.limits.transform_seconds).content

    def _failure(self, ref: ArchiveRef, ended: ChildExit) -> str:
        caps = self._settings.limits
        failure = f"its transformation {ended.describe(caps.transform_seconds, caps.transform_bytes)}"
        self._failures[ref] = failure
        if len(self._failures) > _FAILURES:
            self._failures.popitem(last=False)
        return failure

    def _end_when_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._idle = threading.Timer(_IDLE_SECONDS, self._end_idle)
        self._idle.daemon = True
        self._idle.start()

    def _end_idle(self) -> None:
        with self._lock:
            if threading.current_thread() is self._idle:  # else a version has been asked for meanwhile
                self._child.end()
