"""A transform worker: pages in, what they say out. Disposable by design.

Native parsers can crash, hang or eat memory on hostile input, and no try/except guards against that. So the owner
watches from outside (`quadloom.crawling.workers.pool`) and may end this process at any moment; it holds nothing of
value."""

from __future__ import annotations

import gc
import time

import msgspec

from quadloom.crawling.workers.messages import (
    MANY_LINKS,
    READY,
    ServicesWanted,
    WorkerAnswer,
    WorkerMessage,
    WorkerTask,
)
from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import detected_page, process_page
from quadloom.documents.syntaxes.external import ServicesNeeded
from quadloom.documents.syntaxes.plugins import all_syntaxes
from quadloom.documents.syntaxes.xml import stylesheet_folder
from quadloom.fetching.document_loader import document_loader
from quadloom.model import wire
from quadloom.process.channel import Channel, run
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record

_RECENT = 200_000  # links remembered as already offered; a site's navigation repeats on every page
_YOUNG = 50_000  # objects made and not freed since the collector came last


class RecentLinks:
    """Links that this worker has offered, with their depth: only new links and shorter paths are sent again.

    Nine of ten links of a page are its site's navigation. Leaving them out here saves a record, its encoding, a pipe
    and a lookup for each. It is safe: the owner settles an answer's links in the same transaction as its page, and
    if the owner dies, so does this memory.

    Two generations: when the young one is full it becomes the old one, so at least `size / 2` of the newest stay. One
    dictionary that drops its oldest entry for each new one takes time for all that it has dropped since it last grew:
    60 µs a link instead of .4.
    """

    def __init__(self, size: int) -> None:
        self._half = max(1, size // 2)
        self._young: dict[int, int] = {}
        self._old: dict[int, int] = {}

    def is_news(self, fingerprint: int, depth: int) -> bool:
        known = self._young.get(fingerprint)
        if known is None and (known := self._old.get(fingerprint)) is not None and known <= depth:
            self._put(fingerprint, known)
            return False
        if known is not None and known <= depth:
            return False
        self._put(fingerprint, depth)
        return True

    def _put(self, fingerprint: int, depth: int) -> None:
        if len(self._young) >= self._half:
            self._old, self._young = self._young, {}
        self._young[fingerprint] = depth

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()


def serve(channel: Channel) -> None:
    settings = channel.receive(Settings)
    strategies = chosen(settings.crawl.strategies)
    loader = document_loader(settings)
    assembled = all_syntaxes(settings)
    syntaxes = assembled.registry
    kinds = syntaxes.kinds(stylesheet_folder.SYNTAX)
    trouble = (*assembled.findings, *stylesheet_folder.folder_findings(settings.transform.stylesheets, kinds))
    recent = RecentLinks(_RECENT)
    _collect_seldom()
    channel.send(READY)
    while True:
        task = wire.decode(channel.receive_bytes(), WorkerTask)
        started = time.process_time()
        if task.forget:
            recent.clear()
        if task.strategies is not None:
            settings = with_strategies(settings, task.strategies)
            strategies = chosen(task.strategies)
        if task.only_detect:
            record = encode_record(task.page) if task.archive else None
            answer = WorkerAnswer(task.number, detected_page(task.page), record, time.process_time() - started)
            channel.send(WorkerMessage(answer))
            continue
        try:
            result = process_page(
                task.page, task.visit, settings, strategies, loader, syntaxes, recent.is_news, task.answers
            )
        except ServicesNeeded as needed:
            channel.send(WorkerMessage(ServicesWanted(task.number, needed.requests)))
            continue
        keep = task.archive and not result.noarchive and (result.has_data or not settings.index.only_data)
        record = encode_record(task.page) if keep else None
        notices: tuple[str, ...] = ()
        if trouble:  # a finding needs a page: the first stands for all
            result = msgspec.structs.replace(result, findings=(*result.findings, *trouble))
            notices, trouble = tuple(finding.message for finding in trouble), ()
        quads = result.quads.packed()
        if quads is not result.quads:
            result = msgspec.structs.replace(result, quads=quads)
        links = b""
        if len(result.discoveries) > MANY_LINKS:
            links = wire.encode(result.discoveries)
            result = msgspec.structs.replace(result, discoveries=())
        answer = WorkerAnswer(task.number, result, record, time.process_time() - started, notices, links)
        channel.send(WorkerMessage(answer))


def _collect_seldom() -> None:
    """Nearly all that a page needs is freed with it; what is left in cycles is a handful of objects. So the collector,
    which by default comes several times within a page, comes after some thousand pages, and never looks at modules and
    tables again. A page that makes many cycles still meets it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 10)


def with_strategies(settings: Settings, names: tuple[str, ...]) -> Settings:
    crawl = msgspec.structs.replace(settings.crawl, strategies=list(names))
    return msgspec.structs.replace(settings, crawl=crawl)


def main() -> None:
    run(serve)


if __name__ == "__main__":
    main()
