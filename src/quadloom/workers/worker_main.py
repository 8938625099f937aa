"""A transform worker: pages in, what they say out. Disposable by design.

Native parsers can crash, hang or eat memory on hostile input, and no try/except guards against that. So the owner
watches from outside (`quadloom.workers.pool`) and may end this process at any moment; it holds nothing of value.
"""

from __future__ import annotations

import time

import msgspec

from quadloom.model import wire
from quadloom.model.link import Discovery
from quadloom.model.page import Page
from quadloom.model.service import ServiceAnswer, ServiceRequest
from quadloom.model.visit import Visit
from quadloom.phases.extract import chosen
from quadloom.phases.loaders import all_syntaxes, document_loader
from quadloom.pipeline import PageResult, detected_page, process_page
from quadloom.process.channel import Channel, run
from quadloom.settings import Settings
from quadloom.stores.archive.warc_record import encode as encode_record
from quadloom.stores.protocols.archive import ArchiveRecord
from quadloom.syntaxes.external import ServicesNeeded
from quadloom.syntaxes.xml import stylesheet_folder

_RECENT = 200_000  # links remembered as already offered; a site's navigation repeats on every page
_MANY_LINKS = 1000
READY = "ready"  # the first message: imports are done, deadlines may count


class WorkerTask(msgspec.Struct, frozen=True, array_like=True):
    """A page to transform. `archive`: also encode its archive record, if the page allows that.

    `forget` clears the memory of offered links: the scope has changed, so links refused before may count now.
    `answers` of the services that were asked about the page; None = none was asked yet.
    """

    number: int
    visit: Visit
    page: Page
    archive: bool = True
    forget: bool = False
    only_detect: bool = False  # the answer has the kind of document, and nothing else
    answers: tuple[ServiceAnswer, ...] | None = None
    strategies: tuple[str, ...] | None = None  # link strategies from this page on; None = as before


class WorkerAnswer(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The answer to the task of this number. `record` is None if the page must not be archived.

    `notices`: what is wrong with the installation, such as a plug-in that cannot be loaded; with the first answer.
    `links`: the discoveries of the page, encoded (`packed_links`); `result` has none then.
    """

    number: int
    result: PageResult
    record: ArchiveRecord | None
    cpu_seconds: float
    notices: tuple[str, ...] = ()
    links: bytes = b""

    def with_links(self) -> PageResult:
        """The result with its discoveries."""
        return unpacked(self.result, self.links)


def unpacked(result: PageResult, links: bytes) -> PageResult:
    """The result with the discoveries that were packed apart, if they were."""
    return msgspec.structs.replace(result, discoveries=wire.decode(links, tuple[Discovery, ...])) if links else result


def packed_links(result: PageResult) -> bytes:
    """Many discoveries, encoded. As objects they take 600 bytes each in the owner, encoded a quarter of that: answers
    with 50,000 links wait there while others are written. Few links, the usual case, are not worth it: b""."""
    return wire.encode(result.discoveries) if len(result.discoveries) > _MANY_LINKS else b""


class ServicesWanted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The page of this number is to be sent again, with the answers of these services."""

    number: int
    requests: tuple[ServiceRequest, ...]


class WorkerMessage(msgspec.Struct, frozen=True, array_like=True):
    """What a worker sends for each task."""

    content: WorkerAnswer | ServicesWanted


class RecentLinks:
    """Links that this worker has offered, with their depth: only new links and shorter paths are sent again.

    Nine of ten links of a page are its site's navigation. Leaving them out here saves a record, its encoding, a pipe
    and a lookup for each. It is safe: the owner settles an answer's links in the same transaction as its page, and
    if the owner dies, so does this memory.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._depths: dict[int, int] = {}

    def is_news(self, fingerprint: int, depth: int) -> bool:
        known = self._depths.get(fingerprint)
        if known is not None and known <= depth:
            return False
        self._depths[fingerprint] = depth
        if len(self._depths) > self._size:
            del self._depths[next(iter(self._depths))]
        return True

    def clear(self) -> None:
        self._depths.clear()


def serve(channel: Channel) -> None:
    settings = channel.receive(Settings)
    channel.send(READY)
    strategies = chosen(settings.crawl.strategies)
    loader = document_loader(settings)
    assembled = all_syntaxes(settings)
    syntaxes = assembled.registry
    kinds = syntaxes.kinds(stylesheet_folder.SYNTAX)
    trouble = (*assembled.findings, *stylesheet_folder.folder_findings(settings.transform.stylesheets, kinds))
    recent = RecentLinks(_RECENT)
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
        links = packed_links(result)
        if links:
            result = msgspec.structs.replace(result, discoveries=())
        answer = WorkerAnswer(task.number, result, record, time.process_time() - started, notices, links)
        channel.send(WorkerMessage(answer))


def with_strategies(settings: Settings, names: tuple[str, ...]) -> Settings:
    crawl = msgspec.structs.replace(settings.crawl, strategies=list(names))
    return msgspec.structs.replace(settings, crawl=crawl)


if __name__ == "__main__":
    run(serve)
