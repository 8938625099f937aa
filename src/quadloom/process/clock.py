"""Unix time that no change of the machine's clock moves: the time of one process, and of the children it starts.

Somebody sets the clock, or NTP does it after a boot with an empty battery: by minutes, or by years. Host clocks, leases
and due times are unix times, since they must survive the process. If they were compared with the wall clock, a step
forward would make all hosts free at once, and a step back would let them rest until the clock has caught up. So the
wall clock is read once, when the process begins; from there on the kernel's steady clock counts, also while the machine
is suspended. Children get the same origin (`quadloom.process.channel`), so that a time means the same to all.

A warehouse stores a `ClockStamp`. When it is opened again, `step_since` says by how much the clock was set between
the two processes, and the frontier moves its times by as much.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

_NOTABLE = 60.0  # seconds: smaller corrections are not reported


def _steady() -> float:
    """Seconds since the machine was started. Unlike `time.monotonic` it counts time in which it was suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class _Origin:
    """Unix time at which the steady clock was 0."""

    def __init__(self) -> None:
        self.at = time.time() - _steady()


_origin = _Origin()


def unix_time() -> float:
    """The time of this process."""
    return _origin.at + _steady()


def origin() -> float:
    """What a child needs to have the same time."""
    return _origin.at


def adopt(at: float) -> None:
    """Have the time of the process with this origin, the owner."""
    _origin.at = at


def wall_time() -> float:
    """What the clock of the machine says."""
    return time.time()


class ClockStamp(msgspec.Struct, frozen=True, array_like=True):
    """A moment: `at` by the clock of the process, which has this `origin`. `boot`: names the run of the machine; empty
    = the system does not say."""

    at: float
    origin: float
    boot: str


def stamp() -> ClockStamp:
    return ClockStamp(unix_time(), origin(), _boot())


def step_since(before: ClockStamp) -> float:
    """By how many seconds the clock was set since a process took this stamp, forward or back (negative); 0 = it was
    not, as far as can be known. After a restart of the machine nobody knows how long it was off, so that only a clock
    that is behind the stamp was certainly set."""
    now = stamp()
    step = now.origin - before.origin if now.boot and now.boot == before.boot else min(0.0, now.at - before.at)
    return step if abs(step) >= _NOTABLE else 0.0


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def described_step(seconds: float) -> str:
    """`3 hours forward`, `2 years back`."""
    units = (("years", 365 * 86400.0), ("days", 86400.0), ("hours", 3600.0), ("minutes", 60.0))
    name, length = next((unit for unit in units if abs(seconds) >= 1.5 * unit[1]), ("seconds", 1.0))
    return f"{abs(seconds) / length:.0f} {name} {'forward' if seconds > 0 else 'back'}"


class StepWatch:
    """Notices, once, that the wall clock was set while `clock` went on."""

    def __init__(self, clock: Callable[[], float], wall: Callable[[], float]) -> None:
        self._clock = clock
        self._wall = wall
        self._difference = wall() - clock()
        self._is_reported = False

    def step(self) -> float:
        """By how many seconds the wall clock was set; 0 = it was not, or that was reported before."""
        step = self._wall() - self._clock() - self._difference
        if self._is_reported or abs(step) < _NOTABLE:
            return 0.0
        self._is_reported = True
        return step
