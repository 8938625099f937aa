"""A ranking in a child process: its memory goes back to the system, and its work never holds the crawl's interpreter.

The child gets a `RankingOrder` and answers with a `RankingResult`; the ranks themselves are files. If it crashes, runs
out of memory or is killed, the ranks stay as they were, and the next ranking begins where this one began.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

import msgspec

from quadloom.errors import ChildFailed, QuadloomError
from quadloom.planning.ranking.ranking_job import RankingOrder, RankingResult, Solver, run_ranking
from quadloom.process.channel import Channel, ChildProcess, run, start
from quadloom.process.request_child import ChildEnded, RequestChild

_NICE = 10  # nobody waits for a ranking; fetching and settling go first
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}  # nothing here needs the threads they start


class RankingRunner(Protocol):
    """What computes a ranking. `close` may be called from another thread and ends a ranking in progress."""

    def run(self, order: RankingOrder) -> RankingResult:
        """Raises `ChildFailed` if there is no result."""
        ...

    def close(self) -> None: ...


def start_ranking() -> ChildProcess:
    return start(__name__, "rank", environment=_ENVIRONMENT)


class RankingProcess:
    """Runs each ranking in a child process of its own, which `start` starts."""

    def __init__(self, start: Callable[[], ChildProcess] = start_ranking) -> None:
        self._child = RequestChild(start)

    def run(self, order: RankingOrder) -> RankingResult:
        try:
            result = self._child.ask(order, RankingResult)
            self._child.finish()
        except ChildEnded as ended:
            raise ChildFailed(
                f"the process that ranks pages {ended.describe(0.0, 0)}",
                hint="pages keep their ranks; the next ranking tries again",
            ) from None
        finally:
            self._child.end()
        if result.failure:
            raise ChildFailed(f"pages could not be ranked: {result.failure}", hint="pages keep their ranks")
        return result

    def close(self) -> None:
        self._child.close()


class RankingInThread:
    """Runs rankings in the calling thread: for a solver that has processes of its own, simulations and tests."""

    def __init__(self, solve: Solver | None = None) -> None:
        self._solve = solve

    def run(self, order: RankingOrder) -> RankingResult:
        return run_ranking(order, self._solve)

    def close(self) -> None:
        """A ranking in progress goes on to its end."""


def serve(channel: Channel) -> None:
    channel.receive(str)
    order = channel.receive(RankingOrder)
    with suppress(OSError):
        os.nice(_NICE)
    try:
        result = msgspec.structs.replace(run_ranking(order), cpu_seconds=time.process_time())  # with the imports
    except QuadloomError as error:
        result = RankingResult(failure=error.message)
    except OSError as error:  # most likely the disk is full
        result = RankingResult(failure=str(error))
    channel.send(result)


def main() -> None:
    run(serve)


if __name__ == "__main__":
    main()
