"""What a child process may use, what it has used, and how it ended. The limits are the kernel's, so they hold in native
code too: a parser that hangs or allocates neither returns to Python nor raises anything there.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import time
from contextlib import suppress
from typing import Literal

import msgspec

EXIT_OUT_OF_MEMORY = 71  # exit code of a child whose Python code ran out of memory
_TRIM_THRESHOLD, _ARENA_MAX = -1, -8  # parameters of glibc's mallopt
_ARENAS = 2
_KEPT_BYTES = 1 << 16  # of free memory at the end of an arena


class ChildExit(msgspec.Struct, frozen=True):
    """How a child ended. `code` as in `Popen.returncode`: negative for a signal.

    `deadline`: killed by its owner's deadline or its own alarm. `memory`: ran into its cap. Native code that cannot
    allocate often aborts instead; that is a `signal`, since a stack overflow may end the same way.
    """

    cause: Literal["done", "deadline", "memory", "signal", "error"]
    code: int

    def describe(self, seconds: float, memory: int) -> str:
        """A predicate for a sentence about the work: "took longer than 10 s", "crashed with signal 11"."""
        if self.cause == "deadline":
            return f"took longer than {seconds:g} s"
        if self.cause == "memory":
            return f"used more than {memory >> 20} MiB of memory"
        return f"crashed with signal {-self.code}" if self.code < 0 else f"ended with exit code {self.code}"


def exit_of(code: int, *, timed_out: bool) -> ChildExit:
    if timed_out or code in (-signal.SIGALRM, -signal.SIGXCPU):
        return ChildExit("deadline", code)
    if code == EXIT_OUT_OF_MEMORY:
        return ChildExit("memory", code)
    if code:
        return ChildExit("signal" if code < 0 else "error", code)
    return ChildExit("done", code)


def limit_memory(address_space: int) -> None:
    """Cap this process's address space; 0 = no cap. A lower cap that it was started with stays. It never writes a core
    file: those of a parser are large."""
    if address_space:
        _, inherited = resource.getrlimit(resource.RLIMIT_AS)
        most = address_space if inherited == resource.RLIM_INFINITY else min(address_space, inherited)
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def return_freed_memory() -> None:
    """Let this process give back memory that its native threads have freed. Call it before they start.

    glibc gives each thread an arena of its own, up to eight per core, and the threads of RocksDB and tantivy leave what
    they free there: the owner of a long crawl grew with every page. Other C libraries have no such parameters."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    mallopt(_ARENA_MAX, _ARENAS)
    mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)


def trim_memory() -> None:
    """Give back freed memory that lies between used parts, too. glibc does that only if it is asked to."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def limit_time(seconds: float) -> None:
    """End this process `seconds` from now, by the wall clock or a second later by CPU time.

    There is no handler: the kernel ends the process, whatever code it is in. Call it after the imports, and again for
    each further piece of work.
    """
    spent = math.ceil(sum(os.times()[:2]) + seconds) + 1
    hardest = resource.getrlimit(resource.RLIMIT_CPU)[1]
    resource.setrlimit(resource.RLIMIT_CPU, (spent if hardest < 0 else min(spent, hardest), hardest))
    set_alarm(seconds)


def set_alarm(seconds: float) -> None:
    """End this process after `seconds` unless called again; 0 = never. For an owner that fails to do it."""
    signal.setitimer(signal.ITIMER_REAL, seconds)


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far; 0 if it does not exist."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            parts = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def queued_seconds(pid: int) -> float | None:
    """How long the main thread of a process was ready to run and got no processor, so far; None if the system does not
    say (https://docs.kernel.org/scheduler/sched-stats.html, the second number)."""
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as stat:
            return int(stat.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return None


class TaskTime:
    """How much time a child has had for the task that it works on.

    Wall time alone blames a task for a busy machine, CPU time alone never ends one that sleeps. So this is wall time
    without the time in which the child waited for a processor, and at least its CPU time. If the system does not say
    how long it waited, a quarter of the wall time counts.
    """

    _WITHOUT_STATISTICS = 4.0

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.begin(time.monotonic())

    def begin(self, now: float) -> None:
        """A new task. Costs nothing: the child's figures are read by the first `spent`."""
        self._since = now
        self._before: tuple[float, float | None] | None = None

    def excuse(self, seconds: float) -> None:
        """These seconds do not count: nobody could run, because the machine or the process group was stopped."""
        self._since += seconds

    def spent(self, now: float) -> float:
        """Seconds that the task has had."""
        cpu, queued = cpu_seconds(self._pid), queued_seconds(self._pid)
        if self._before is None:
            self._before = cpu, queued
        cpu_before, queued_before = self._before
        wall = max(0.0, now - self._since)
        if queued is None or queued_before is None:
            return max(cpu - cpu_before, wall / self._WITHOUT_STATISTICS)
        return max(cpu - cpu_before, wall - (queued - queued_before))


def resident_bytes(pid: int) -> int:
    """Memory of a process that is in RAM; 0 if it does not exist."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
