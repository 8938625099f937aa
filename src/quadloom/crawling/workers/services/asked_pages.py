"""Pages that have left the workers until the services that take them have answered."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from quadloom.crawling.workers.messages import WorkerTask
from quadloom.crawling.workers.services.balance import slots_of
from quadloom.model.event import EventKind
from quadloom.model.service import InstanceLoad, ServiceAnswer, ServiceRequest
from quadloom.process.channel import ProcessHeartbeat
from quadloom.settings import Settings

if TYPE_CHECKING:
    from quadloom.crawling.workers.services.service_process import ServiceProcess

_LEAST = 64  # pages that may wait, however few instances there are


class _AskedPage:
    __slots__ = ("answers", "missing", "task")

    def __init__(self, task: WorkerTask, missing: int) -> None:
        self.task = task
        self.missing = missing
        self.answers: list[ServiceAnswer] = []


class AskedPages:
    """`add` pages; `returned` gets each again, with its answers, from another thread. May be used by any thread.

    The process that asks the services starts with the first page.
    """

    def __init__(
        self,
        settings: Settings,
        returned: Callable[[WorkerTask], None],
        notice: Callable[[EventKind, str], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._settings = settings
        self._returned = returned
        self._notice = notice
        self._failed = failed
        self._lock = threading.Lock()
        self._keys = itertools.count()
        self._pages: dict[int, _AskedPage] = {}  # by the key of each request
        self._process: ServiceProcess | None = None
        self._most = max(_LEAST, 2 * sum(slots_of(service) for service in settings.service))

    @property
    def is_full(self) -> bool:
        """As many pages wait as the services will be busy with for a while: no more should be read."""
        return len(self._pages) >= self._most

    @property
    def loads(self) -> tuple[InstanceLoad, ...]:
        return self._process.loads if self._process is not None else ()

    def add(self, task: WorkerTask, requests: tuple[ServiceRequest, ...]) -> None:
        page = _AskedPage(task, len(requests))
        with self._lock:
            if self._process is None:
                from quadloom.crawling.workers.services.service_process import ServiceProcess  # clients of all kinds

                self._process = ServiceProcess(self._settings, self._answered, self._notice, self._failed)
            keys = [next(self._keys) for _ in requests]
            self._pages.update((key, page) for key in keys)
        for key, request in zip(keys, requests, strict=True):
            self._process.ask(key, request, task.page.body)

    def heartbeats(self) -> list[ProcessHeartbeat]:
        return [self._process.heartbeat()] if self._process is not None else []

    def cpu_seconds(self) -> float:
        return self._process.cpu_seconds() if self._process is not None else 0.0

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def _answered(self, key: int, answer: ServiceAnswer) -> None:
        with self._lock:
            page = self._pages.pop(key)
            page.answers.append(answer)
            page.missing -= 1
        if not page.missing:
            self._returned(msgspec.structs.replace(page.task, answers=tuple(page.answers)))
