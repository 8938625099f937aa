"""Results of a job's tasks, a file each, until the job is complete: they may be larger than memory, and survive a kill.

job                     which job this is, and its tasks
pages-0000017-of-400    the result of a task; it has its name when it is complete
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import msgspec

from quadloom.errors import UsageError
from quadloom.model.wire import decode, encode
from quadloom.process.bulk_tasks import BulkJob, Runner
from quadloom.process.durable import make_folder, write_file

_JOB = "job"


class _Begun(msgspec.Struct, frozen=True):
    name: str
    argument: bytes
    tasks: list[str]


class TaskFolder:
    """`resume`: continue the job that this folder holds, if it is the same one. Otherwise its results are removed."""

    def __init__(self, folder: Path, job: BulkJob, tasks: Sequence[str], *, resume: bool) -> None:
        self._folder = folder
        self._job = job
        begun = self._begun() if resume else None
        if begun is None:
            shutil.rmtree(folder, ignore_errors=True)
            make_folder(folder)
            begun = _Begun(job.name, job.argument, list(tasks))
            write_file(folder / _JOB, encode(begun))
        elif (begun.name, begun.argument) != (job.name, job.argument):
            raise UsageError(
                f"the interrupted job in {folder} is another one: it has other options, or pages were read since",
                hint="use the same options as before, or leave --resume out to begin again",
            )
        self.tasks: list[str] = begun.tasks

    def run(self, runner: Runner, tasks: Sequence[str] | None = None) -> Iterator[str]:
        """Do what is left of these tasks, by default of all. Gives the name of each as soon as its result is here."""
        wanted = self.tasks if tasks is None else tasks
        done = [task for task in wanted if self.path(task).exists()]
        yield from done
        left = sorted(set(wanted).difference(done))
        if left:
            for result in runner(self._job, left):
                write_file(self.path(result.task), result.data)  # synced: a resumed job trusts what it finds here
                yield result.task

    def path(self, task: str) -> Path:
        """The file with the result of a finished task."""
        return self._folder / quote(task, safe="")  # files of the archive have slashes in their names

    def finish(self) -> None:
        """The job is complete: nothing is left to resume."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _begun(self) -> _Begun | None:
        try:
            return decode((self._folder / _JOB).read_bytes(), _Begun)
        except (FileNotFoundError, msgspec.DecodeError):
            return None
