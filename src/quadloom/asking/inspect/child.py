"""Transformation of one document in a process of its own, with limits of time and memory.

Run as `python -m quadloom.asking.inspect.child`: a task on standard input, the answer on standard output. The limits
are the kernel's (alarm, CPU, address space), because native parsers neither return to Python nor fail politely when a
document is made to hurt them. What the child does may end it at any moment; the parent then says so.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import subprocess
import sys

import msgspec

from quadloom.model import wire
from quadloom.model.document import Transformed
from quadloom.model.finding import Finding
from quadloom.settings import Settings

_START_SECONDS = 20.0  # for the interpreter and its imports on a busy machine; the alarm starts after them


class InspectTask(msgspec.Struct, frozen=True):
    """A document and how to read it."""

    body: bytes
    url: str
    content_type: str | None
    headers: tuple[tuple[str, str], ...]
    settings: Settings


class InspectResult(msgspec.Struct, frozen=True):
    """What came of it: `transformed`, or why there is nothing. `seconds` is CPU time of detect and transform."""

    transformed: Transformed | None = None
    seconds: float = 0.0
    failure: str = ""


def transform_apart(task: InspectTask) -> InspectResult:
    """Transform in a child process. Never raises for what the document does to it."""
    limits = task.settings.limits
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", __name__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )
    try:
        answer, _ = process.communicate(wire.encode(task), timeout=limits.transform_seconds + _START_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return InspectResult(failure=f"took longer than {limits.transform_seconds:g} s")
    try:
        return wire.decode(answer, InspectResult)
    except msgspec.DecodeError:
        return InspectResult(failure=_cause(process.returncode, task.settings))


def _cause(code: int, settings: Settings) -> str:
    if code in (-signal.SIGALRM, -signal.SIGXCPU):
        return f"took longer than {settings.limits.transform_seconds:g} s"
    if code < 0:
        return f"crashed with signal {-code}"
    return f"ended with exit code {code}, perhaps by the limit of {settings.limits.transform_bytes >> 20} MiB of memory"


def main() -> None:
    """Read a task, limit this process, answer."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a plug-in prints must not mix with the answer
    task = wire.decode(sys.stdin.buffer.read(), InspectTask)
    from time import process_time

    from quadloom.phases.loaders import all_syntaxes, document_loader
    from quadloom.phases.transform import transform

    syntaxes = all_syntaxes(task.settings)
    _limit(task.settings)
    started = process_time()
    transformed = transform(
        task.body,
        url=task.url,
        content_type=task.content_type,
        headers=task.headers,
        settings=task.settings,
        loader=document_loader(task.settings),
        syntaxes=syntaxes.registry,
    )
    findings: tuple[Finding, ...] = (*transformed.findings, *syntaxes.findings)
    result = InspectResult(msgspec.structs.replace(transformed, findings=findings), process_time() - started)
    answers.write(wire.encode(result))
    answers.flush()


def _limit(settings: Settings) -> None:
    seconds = settings.limits.transform_seconds
    address_space = settings.limits.transform_bytes * 2  # mapped, not used: libraries map more than they touch
    resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))
    spent = math.ceil(sum(os.times()[:2]) + seconds) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (spent, spent + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.setitimer(signal.ITIMER_REAL, seconds)  # no handler: the kernel ends the process, whatever code it is in


if __name__ == "__main__":
    main()
