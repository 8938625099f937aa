"""The pool of transform workers and its watchdog.

Each worker has a short queue of pages in its channel and answers them in order, so the page at the head is the one
being transformed. When a worker dies, or its head takes longer than the deadline, or its memory exceeds the cap, the
watchdog kills it, blames the head, and sets the other pages aside. A page that was blamed twice is quarantined; one
that was blamed once and then transformed has a finding that says so. A worker that ends before it is ready blames no
page; after several such starts in a row the run ends with `ChildFailed`. The deadline counts the time that the worker
could use: neither its waiting for a processor, nor a pause of the whole machine (`quadloom.process.limits.TaskTime`).

Threads: only the owner's thread sends. One watchdog thread receives all answers and checks deadlines, so a worker never
blocks in send while the owner blocks in send; that deadlocked the prototype. The pages of a dead worker wait until the
owner calls `redistribute`; a notice of the death tells it when.

A page that a service takes comes back from its worker at once. It leaves the workers, waits for the answers of its
services (`quadloom.crawling.workers.services`) and is then sent to any worker, again by `redistribute`. So the speed of
services does not depend on the number of workers, and their time does not count against the page's deadline.

A page that takes longer than `SLOW_SECONDS` while others wait behind it is taken from its worker, which is replaced,
and done later, in the slow lane: at most half of the workers have a slow page, and nothing waits behind one.
"""

from __future__ import annotations

import itertools
import os
import queue
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable

import msgspec

from quadloom.crawling.workers.messages import WORKER, ServicesWanted, WorkerAnswer, WorkerMessage, WorkerTask
from quadloom.crawling.workers.services.asked_pages import AskedPages
from quadloom.model import wire
from quadloom.model.event import EventKind
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.model.service import InstanceLoad
from quadloom.model.visit import Visit
from quadloom.process import threads
from quadloom.process.channel import ChannelClosed, ChildProcess, ProcessHeartbeat, start
from quadloom.process.limits import TaskTime
from quadloom.process.restarts import Restarts
from quadloom.settings import Settings

_DEPTH = 4  # pages queued in one worker: enough that it never waits for the owner
_TICK = 0.2  # seconds between two checks of deadlines and memory
_LATE = 1.0  # a check that comes later than this was held up itself: by a stopped group, or a machine that slept
_BLAMES = 2
SLOW_SECONDS = 0.5  # that a page may take while others wait behind it
_GROW_AFTER = 100  # pages that one worker transforms: starting another costs as much CPU as transforming so many
_START_SECONDS = 30.0  # a loaded machine may need long to import the parsers; no page is to blame for that


class TransformResult(msgspec.Struct, frozen=True):
    """A page and its answer; `answer` is None if the page was quarantined, and `reason` says why. `number` and
    `receiver` are those of `submit`."""

    visit: Visit
    page: Page
    answer: WorkerAnswer | None
    reason: str = ""
    number: int = 0
    receiver: Receiver | None = None


Receiver = Callable[[TransformResult], None]


class SlowPage(msgspec.Struct, frozen=True):
    """A page that was taken from its worker. Submit it again with its number and as slow."""

    visit: Visit
    page: Page
    number: int


class PoolChanged(msgspec.Struct, frozen=True):
    """A page has left its worker for a service, so there is room, or has come back: call `redistribute`."""


class _Worker:
    __slots__ = ("child", "head_time", "name", "ready", "slow", "tasks")

    def __init__(self, child: ChildProcess, name: str) -> None:
        self.child = child
        self.name = name
        self.tasks: deque[WorkerTask] = deque()
        self.head_time = TaskTime(child.process.pid)
        self.ready = False
        self.slow: int | None = None  # the number of its slow task

    def next_task(self) -> WorkerTask:
        """Its head has left."""
        task = self.tasks.popleft()
        if task.number == self.slow:
            self.slow = None
        self.head_time.begin(time.monotonic())
        return task


class WorkerPool:
    """`submit` pages while `room()` is not 0; `done` receives, in any order, `TransformResult`s, `SlowPage`s and
    `PoolChanged`.

    The workers start with the first call of either. `size` 0: one worker at first, and after `_GROW_AFTER` pages
    `crawl.workers`, or one per core.

    `done`, `notice` and `failed` are called from other threads, all other methods belong to the owner's.
    `failed`: an error of such a thread itself. `gives_back`: slow pages without a receiver come back, as `SlowPage`.
    """

    def __init__(
        self,
        size: int,
        settings: Settings,
        done: Callable[[TransformResult | SlowPage | PoolChanged], None],
        notice: Callable[[EventKind, str], None],
        failed: Callable[[BaseException], None],
        *,
        gives_back: bool = False,
    ) -> None:
        self._size = size
        self._gives_back = gives_back
        self._settings = settings
        self._done = done
        self._notice = notice
        self._failed = failed
        self._numbers = itertools.count()
        self._lock = threading.RLock()
        self._selector = selectors.DefaultSelector()
        self._receivers: dict[int, Receiver] = {}  # by the number of the task
        self._blames: dict[int, list[str]] = {}  # number of a task → why its workers were replaced
        self._unsent: queue.SimpleQueue[WorkerTask] = queue.SimpleQueue()  # tasks to be sent (again)
        self._slow: deque[WorkerTask] = deque()  # those that did not come back
        self._asked: AskedPages | None = None  # since a page wanted answers of services
        self._generation = 0  # counts `forget_links`
        self._strategies: tuple[str, ...] | None = None  # others than those that the workers began with
        self._generation_sent: dict[str, int] = {}
        self._noticed: set[str] = set()
        self._spent_cpu = 0.0  # of workers that have died
        self._restarts = Restarts("transform")
        self._workers: list[_Worker] = []
        self._thread: threading.Thread | None = None

    def room(self) -> int:
        """How many pages that are not known to be slow can be submitted now without waiting."""
        if self._thread is None:
            self._start()
        if self._asked is not None and self._asked.is_full:
            return 0
        with self._lock:
            return sum([max(0, _DEPTH - len(worker.tasks)) for worker in self._workers if worker.slow is None])

    def slow_room(self, *, others: bool) -> int:
        """How many slow pages can be submitted now. `others`: there are pages that are not slow, too."""
        with self._lock:
            most = max(0 if others else 1, len(self._workers) // 2)
            return most - sum([worker.slow is not None for worker in self._workers])

    def submit(
        self,
        visit: Visit,
        page: Page,
        receiver: Receiver | None = None,
        *,
        archive: bool = True,
        only_detect: bool = False,
        slow: bool = False,
        number: int | None = None,
    ) -> int:
        """Send a page to the worker with the shortest queue. Its `TransformResult` carries the number returned, and
        whoever takes it hands it to `receiver`, if there is one. `slow`: see `slow_room`; `number`: of a `SlowPage`."""
        if self._thread is None:
            self._start()
        number = next(self._numbers) if number is None else number
        task = WorkerTask(number, visit, page, archive, only_detect=only_detect)
        if receiver is not None:
            self._receivers[task.number] = receiver
        self._send(task, slow=slow)
        if task.number == _GROW_AFTER and not self._size:
            self._grow(self._settings.crawl.workers or os.cpu_count() or 1)
        return task.number

    def redistribute(self) -> None:
        """Send to workers: the pages of those that died, and pages that have come back from services."""
        while not self._unsent.empty():
            self._send(self._unsent.get())
        while self._slow and self.slow_room(others=False) > 0:
            self._send(self._slow.popleft(), slow=True)

    def forget_links(self) -> None:
        """After a change of scope: make the workers offer all links again."""
        with self._lock:
            self._generation += 1

    def change_strategies(self, settings: Settings) -> None:
        """Other link strategies: the workers find links by them from the next page on."""
        with self._lock:
            self._settings = settings
            self._strategies = tuple(settings.crawl.strategies)
            self._generation += 1

    def cpu_seconds(self) -> float:
        with self._lock:
            workers = sum(worker.child.cpu_seconds() for worker in self._workers)
            return self._spent_cpu + workers + (self._asked.cpu_seconds() if self._asked is not None else 0.0)

    def heartbeats(self) -> list[ProcessHeartbeat]:
        with self._lock:
            workers = [worker.child.heartbeat(worker.name, len(worker.tasks)) for worker in self._workers]
            return workers + (self._asked.heartbeats() if self._asked is not None else [])

    def service_loads(self) -> tuple[InstanceLoad, ...]:
        """Every instance of every service; nothing until the first page was sent to one."""
        return self._asked.loads if self._asked is not None else ()

    def close(self) -> None:
        self._restarts.close()
        with self._lock:
            self._spent_cpu = self.cpu_seconds()
            if self._asked is not None:
                self._asked.close()
            for worker in self._workers:
                worker.child.close()
            self._workers = []
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _start(self) -> None:
        self._grow(self._size or 1)
        self._thread = threads.start("watchdog", self._watch, self._failed)

    def _grow(self, size: int) -> None:
        """Start workers until there are `size`."""
        with self._lock:
            self._workers += [self._start_worker(f"transform-{index}") for index in range(len(self._workers), size)]

    def _send(self, task: WorkerTask, *, slow: bool = False) -> None:
        with self._lock:
            # Behind a slow page only if all workers have one.
            worker = min(self._workers, key=lambda candidate: (candidate.slow is not None, len(candidate.tasks)))
            if slow:
                worker.slow = task.number
            if self._generation_sent.get(worker.name, 0) != self._generation:
                self._generation_sent[worker.name] = self._generation
                task = msgspec.structs.replace(task, forget=True, strategies=self._strategies)
            if not worker.tasks:
                worker.head_time.begin(time.monotonic())
            worker.tasks.append(task)
        try:
            worker.child.channel.send(task)  # outside the lock: the watchdog must be able to kill a stuck worker
        except ChannelClosed:
            return  # the watchdog sees the death too and keeps the task for `redistribute`

    def _start_worker(self, name: str) -> _Worker:
        cap = self._settings.limits.transform_bytes * 2  # mapped, not used: libraries map more than they touch
        worker = _Worker(start(WORKER, self._settings, address_space=cap, from_template=True), name)
        self._selector.register(worker.child.channel, selectors.EVENT_READ, worker)
        return worker

    def _watch(self) -> None:
        checked = time.monotonic()
        while not self._restarts.is_closed:
            for key, _ in self._selector.select(_TICK):
                self._receive(key.data)
            # Not after every answer: reading a worker's memory took half as long as receiving its answer.
            late = time.monotonic() - checked
            if not self._restarts.is_closed and late >= _TICK:
                checked = time.monotonic()
                self._check(late - _TICK if late > _LATE else 0.0)

    def _receive(self, worker: _Worker) -> None:
        try:
            messages = worker.child.channel.poll()
        except ChannelClosed:
            if not self._restarts.is_closed:
                limits = self._settings.limits
                self._replace(worker, worker.child.wait().describe(limits.transform_seconds, limits.transform_bytes))
            return
        for message in messages:
            if worker.ready:
                content = wire.decode(message, WorkerMessage).content
                if isinstance(content, WorkerAnswer):
                    self._answered(worker, content)
                else:
                    self._wanted(worker, content)
            else:
                worker.ready = True
                self._restarts.ready()
                worker.head_time.begin(time.monotonic())

    def _wanted(self, worker: _Worker, wanted: ServicesWanted) -> None:
        with self._lock:
            task = worker.next_task()
        if self._restarts.is_closed:
            return
        if self._asked is None:
            self._asked = AskedPages(self._settings, self._returned, self._notice, self._failed)
        self._asked.add(task, wanted.requests)
        self._done(PoolChanged())

    def _returned(self, task: WorkerTask) -> None:
        self._unsent.put(task)
        self._done(PoolChanged())

    def _answered(self, worker: _Worker, answer: WorkerAnswer) -> None:
        with self._lock:
            task = worker.next_task()
        self._restarts.worked()
        causes = self._blames.pop(task.number, None)
        if causes:
            answer = _with_finding(answer, causes[-1])
        for text in answer.notices:
            if text not in self._noticed:  # every worker has the same trouble
                self._noticed.add(text)
                self._notice("notice", text)
        receiver = self._receivers.pop(task.number, None)
        self._done(TransformResult(task.visit, task.page, answer, "", task.number, receiver))
        if self._slow:
            self._done(PoolChanged())

    def _check(self, pause: float) -> None:
        """`pause`: seconds in which this thread could not run."""
        limits = self._settings.limits
        now = time.monotonic()
        for worker in list(self._workers):
            if not worker.tasks:
                continue
            patience = limits.transform_seconds if worker.ready else max(limits.transform_seconds, _START_SECONDS)
            worker.head_time.excuse(pause)
            spent = worker.head_time.spent(now)
            if spent > patience:
                self._replace(worker, f"took longer than {limits.transform_seconds:g} s")
            elif worker.child.resident_bytes() > limits.transform_bytes:
                self._replace(worker, f"used more than {limits.transform_bytes >> 20} MiB of memory")
            elif spent > SLOW_SECONDS and worker.ready and worker.slow is None:
                self._head_is_slow(worker)

    def _head_is_slow(self, worker: _Worker) -> None:
        """Let the page at the head go on as a slow one if nothing waits behind it, or take it from the worker."""
        with self._lock:
            if not self._size and len(self._workers) == 1:
                self._grow(self._settings.crawl.workers or os.cpu_count() or 1)
            head = worker.tasks[0]
            if len(worker.tasks) == 1 and self.slow_room(others=False) > 0:
                worker.slow = head.number
                return
        self._restart(worker, was_ready=True, cause="had a slow page")
        self._postpone(worker.tasks.popleft())
        for task in worker.tasks:
            self._unsent.put(task)
        self._done(PoolChanged())

    def _postpone(self, task: WorkerTask) -> None:
        """Do a task in the slow lane."""
        if self._gives_back and task.number not in self._receivers:
            self._done(SlowPage(task.visit, task.page, task.number))
        else:
            self._slow.append(task)

    def _replace(self, worker: _Worker, cause: str) -> None:
        """Kill a worker and start another; blame the page at its head, and keep the rest for `redistribute`."""
        blamed = worker.tasks[0].number if worker.ready and worker.tasks else None
        self._restart(worker, was_ready=blamed is not None, cause=cause)
        for task in worker.tasks:  # with those that were sent to the dead worker meanwhile
            if task.number == blamed:
                self._blame(task, cause)
            else:
                self._unsent.put(task)
        self._notice("worker-killed", f"{worker.name} {cause}")

    def _restart(self, worker: _Worker, *, was_ready: bool, cause: str) -> None:
        """`was_ready`: it has worked, up to the page that ended it; any number of such pages may follow each other."""
        self._selector.unregister(worker.child.channel)
        with self._lock:
            self._spent_cpu += worker.child.cpu_seconds()
            worker.child.close()
        if was_ready:
            self._restarts.worked()
        # If a pause is due, this thread receives nothing meanwhile.
        self._restarts.start_again(lambda: self._start_another(worker), was_ready=worker.ready, cause=cause)

    def _start_another(self, dead: _Worker) -> None:
        with self._lock:
            self._workers[self._workers.index(dead)] = self._start_worker(dead.name)
            self._generation_sent.pop(dead.name, None)

    def _blame(self, task: WorkerTask, cause: str) -> None:
        self._blames.setdefault(task.number, []).append(cause)
        if len(self._blames[task.number]) < _BLAMES:
            self._postpone(task)
            return
        del self._blames[task.number]
        self._notice("quarantined", f"{task.visit.href}: {cause}")
        reason = f"quarantined: its transformation {cause}, twice"
        receiver = self._receivers.pop(task.number, None)
        self._done(TransformResult(task.visit, task.page, None, reason, task.number, receiver))


def _with_finding(answer: WorkerAnswer, cause: str) -> WorkerAnswer:
    finding = Finding(
        "worker-replaced",
        f"the first transformation of the page {cause}, and its worker was replaced; the second one succeeded",
        "warning",
        "transform",
        advice="the page is close to limits.transform_seconds or limits.transform_bytes; raise them if this repeats",
    )
    result = msgspec.structs.replace(answer.result, findings=(*answer.result.findings, finding))
    return msgspec.structs.replace(answer, result=result)
