"""How often a child process is started again: a child that cannot work must neither use up the machine nor hide why."""

from __future__ import annotations

from quadloom.errors import ChildFailed

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 5.0  # seconds before the next start; each pause is twice as long as the last
_STARTS = 6  # in a row that may fail before the child was ready
_DEATHS = 40  # in a row of children that were ready and did nothing


class Restarts:
    """Counts the deaths of one kind of child since one of them last did something.

    A child that has worked is replaced at once. One that ended before it was ready, or before it did anything, is
    replaced after a pause. After `_STARTS` failed starts in a row `died` raises `ChildFailed`: the machine lacks
    memory, processes or files, or the installation is damaged, and one more start changes nothing.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._failed_starts = 0
        self._idle_deaths = 0

    def ready(self) -> None:
        """A child has started and read its settings."""
        self._failed_starts = 0

    def worked(self) -> None:
        """A child has done something that it was started for."""
        self._failed_starts = self._idle_deaths = 0

    def died(self, *, was_ready: bool, cause: str) -> float:
        """Seconds to wait before the next start. `cause`: a predicate, such as "ended with exit code 1"."""
        self._idle_deaths += 1
        self._failed_starts += not was_ready
        if self._failed_starts >= _STARTS:
            raise ChildFailed(
                f"the {self._name} process could not be started {self._failed_starts} times in a row; the last one"
                f" {cause}",
                hint="its own message is above. Common causes are too little memory, a limit of processes or open"
                " files, and a damaged installation: see `quadloom check`. The same command resumes",
            )
        if self._idle_deaths >= _DEATHS:
            raise ChildFailed(
                f"the {self._name} process died {self._idle_deaths} times in a row without doing anything; the last"
                f" one {cause}",
                hint="something ends it from outside, such as a limit of memory; see `quadloom check`. The same"
                " command resumes",
            )
        if self._idle_deaths < 2 and was_ready:
            return 0.0
        return min(_FIRST_PAUSE * 2.0 ** (self._idle_deaths - 1), _LONGEST_PAUSE)
