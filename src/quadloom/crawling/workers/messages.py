"""What the owner and a transform worker say to each other. No parser is imported here: the owner never needs one."""

from __future__ import annotations

import msgspec

from quadloom.model import wire
from quadloom.model.link import Discovery
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.service import ServiceAnswer, ServiceRequest
from quadloom.model.visit import Visit
from quadloom.stores.protocols.archive import ArchiveRecord

WORKER = "quadloom.crawling.workers.worker_main"  # the module that runs in a worker
MANY_LINKS = 1000
"""With more links than these a worker sends them encoded. As objects they take 600 bytes each in the owner, encoded a
quarter of that: answers with 50,000 links wait there while others are written. Few links, the usual case, are not worth
it."""
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
    `links`: the discoveries of the page, encoded, if they are more than `MANY_LINKS`; `result` has none then.
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


class ServicesWanted(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """The page of this number is to be sent again, with the answers of these services."""

    number: int
    requests: tuple[ServiceRequest, ...]


class WorkerMessage(msgspec.Struct, frozen=True, array_like=True):
    """What a worker sends for each task."""

    content: WorkerAnswer | ServicesWanted
