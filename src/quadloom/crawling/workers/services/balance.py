"""Which instance of a service is asked next: the one that will probably answer first.

MultiCrawler gave pages to services by a hash of their URL and found that to be its bottleneck: the slowest instance
set the pace. Here all requests of a crawl pass one place, and each goes to the instance with the shortest expected
delay, from the moving mean of its answers and the requests that it has in progress:

* An instance has at most `parallel` requests. One that has not answered yet, or rests after failures, gets one alone.
* If all are busy that are quicker, a slow instance is asked only if it would answer before their queue is served. So a
  slow instance takes the share that its speed allows.
* A mean grows old. An instance that was passed over for `PROBE` requests gets the next one, to see whether it has
  recovered.
* After `FAILURES` failures in a row it rests, for five seconds at first, then twice as long, up to five minutes;
  then one request tests it. A failed request is repeated on another instance.
* When all instances rest, requests wait for `patience` seconds, counted from the moment when the last one failed. Then
  they are given up, without another wait for those that follow, until an instance answers again.

No I/O and no threads: the caller sends what `starts` yields and reports with `ended`.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from quadloom.model.service import InstanceLoad, ServiceReply, ServiceRequest
from quadloom.settings import ServiceSettings

FAILURES = 3  # in a row, until an instance rests
FIRST_REST = 5.0  # seconds
LONGEST_REST = 300.0
PROBE = 32  # requests to others, after which an instance is asked again however slow it was
_SMOOTHING = 0.2  # weight of the newest answer in the mean
_PARALLEL = 4
_RECONSIDER = 0.05  # seconds


def slots_of(service: ServiceSettings) -> int:
    """Most requests at once to all instances of a service."""
    return _parallel(service) * len(_instances(service))


def _parallel(service: ServiceSettings) -> int:
    return service.parallel or (_PARALLEL if service.url else os.cpu_count() or 1)


def _instances(service: ServiceSettings) -> list[str]:
    return service.url.split() or [" ".join(service.command)]


class ServiceCall:
    """One request on its way: the body, which instances were tried, and who wants the answer."""

    __slots__ = ("attempts", "body", "key", "reason", "request", "tried")

    def __init__(self, key: int, request: ServiceRequest, body: bytes) -> None:
        self.key = key
        self.request = request
        self.body = body
        self.attempts = 0
        self.reason = ""  # of the last failure
        self.tried: set[str] = set()


class CallOutcome(NamedTuple):
    """How one attempt ended. Without a reply the instance failed; `absent`: it was not even reached, so the page cannot
    be the cause and the attempt does not count."""

    reply: ServiceReply | None
    reason: str = ""
    absent: bool = False

    @property
    def healthy(self) -> bool:
        """A 4xx is a verdict on the page, not on the service; another instance would say the same."""
        return self.reply is not None and self.reply.status < 500 and self.reply.status != 429


class Instance:
    """One place that can be asked: a URL, or the command itself."""

    __slots__ = ("failed", "failures", "in_progress", "mean", "passed_over", "requests", "rest", "rests_until", "url")

    def __init__(self, url: str) -> None:
        self.url = url
        self.requests = 0
        self.failed = 0
        self.failures = 0  # in a row
        self.mean = 0.0  # seconds of an answer; 0 = none yet
        self.passed_over = 0  # requests that others got since its last one
        self.rest = 0.0  # length of the last rest; 0 = healthy
        self.rests_until = 0.0
        self.in_progress: list[float] = []  # when each began

    def delay(self, now: float) -> float:
        """Seconds that the next answer may take. A request that lasts longer than the mean raises it."""
        oldest = now - min(self.in_progress) if self.in_progress else 0.0
        return max(self.mean, oldest)


class ServiceBalance:
    """The instances of one service and the calls that wait for them. One thread."""

    def __init__(self, service: ServiceSettings, clock: Callable[[], float]) -> None:
        self.service = service
        self._clock = clock
        self._parallel = _parallel(service)
        self.instances = [Instance(name) for name in _instances(service)]
        self.waiting: deque[ServiceCall] = deque()
        self._away_since: float | None = None

    def add(self, call: ServiceCall) -> None:
        self.waiting.append(call)

    def starts(self) -> Iterator[tuple[Instance, ServiceCall]]:
        """The calls that begin now, each with its instance."""
        while self.waiting:
            call = self.waiting[0]
            instance = self._choose(call)
            if instance is None:
                return
            self.waiting.popleft()
            for one in self.instances:
                one.passed_over += 1
            instance.passed_over = 0
            instance.requests += 1
            instance.in_progress.append(self._clock())
            call.tried.add(instance.url)
            yield instance, call

    def ended(self, instance: Instance, call: ServiceCall, outcome: CallOutcome, began: float) -> bool:
        """Count an attempt that began at `began`. True if the call has ended with it; else it waits again."""
        now = self._clock()
        instance.in_progress.remove(began)
        if outcome.healthy:
            taken = max(now - began, 1e-6)
            instance.mean = instance.mean + _SMOOTHING * (taken - instance.mean) if instance.mean else taken
            instance.failures = 0
            instance.rest = 0.0
            self._away_since = None
            return True
        self._failed(instance, now)
        call.reason = outcome.reason
        call.attempts += not outcome.absent
        if call.attempts > self.service.retries:
            return True
        self.waiting.appendleft(call)
        return False

    def given_up(self) -> list[ServiceCall]:
        """The calls that have waited long enough for a service that is away."""
        if self._away_since is None or self._clock() < self._away_since + self.service.patience:
            return []
        if any(self._is_usable(one, self._clock()) for one in self.instances):
            return []  # the rest of one is over, so that the first of them can test it
        calls = list(self.waiting)
        self.waiting.clear()
        return calls

    def next_at(self) -> float | None:
        """When to look again even if nothing ends before; None = no call waits."""
        if not self.waiting:
            return None
        times = [one.rests_until for one in self.instances if one.rest and not one.in_progress]
        if self._away_since is not None:
            times.append(self._away_since + self.service.patience)
        now = self._clock()
        if any(self._is_usable(one, now) and len(one.in_progress) < self._most(one) for one in self.instances):
            times.append(now + _RECONSIDER)  # a quicker one was worth waiting for, unless it is stuck
        later = [at for at in times if at > now]
        return min(later) if later else None

    def loads(self) -> list[InstanceLoad]:
        now = self._clock()
        return [
            InstanceLoad(
                one.url,
                one.requests,
                len(one.in_progress),
                self._parallel,
                round(one.mean, 4),
                one.failed,
                len(self.waiting),
                round(max(0.0, one.rests_until - now), 1) if one.rest else 0.0,
            )
            for one in self.instances
        ]

    def _choose(self, call: ServiceCall) -> Instance | None:
        """The instance for the call at the head; None = it waits for one that is busy, or all rest."""
        now = self._clock()
        usable = [one for one in self.instances if self._is_usable(one, now)]
        untried = [one for one in usable if one.url not in call.tried]
        usable = untried or usable
        free = [one for one in usable if len(one.in_progress) < self._most(one)]
        if not free:
            return None
        overdue = [one for one in free if one.passed_over >= PROBE and not one.in_progress]
        if overdue:
            return overdue[0]
        best = min(free, key=lambda one: (one.delay(now) * (1 + len(one.in_progress)), -one.passed_over))
        queue = 1 + len(self.waiting) / self._parallel
        busy = [one.delay(now) * queue for one in usable if one not in free and one.mean]
        return best if not busy or best.delay(now) <= min(busy) else None

    def _most(self, instance: Instance) -> int:
        return self._parallel if instance.mean and not instance.rest else 1

    @staticmethod
    def _is_usable(instance: Instance, now: float) -> bool:
        return not instance.rest or (instance.rests_until <= now and not instance.in_progress)

    def _failed(self, instance: Instance, now: float) -> None:
        instance.failed += 1
        instance.failures += 1
        if instance.failures >= FAILURES or instance.rest:
            # Requests that were in progress together and fail together are one failure of the instance.
            if not instance.rest or instance.rests_until <= now:
                instance.rest = min(instance.rest * 2 or FIRST_REST, LONGEST_REST)
                instance.rests_until = now + instance.rest
            if self._away_since is None and all(one.rest for one in self.instances):
                self._away_since = now
