"""One run of a user's command on one document: no shell, limits by the kernel, nothing of it is left afterwards.

The document comes from a stranger, so the program that reads it is taken for one that may be tricked. It runs in an
empty directory of its own which is removed after it, with few variables in its environment, in a session of its own, so
that its children end with it. Input and output are files: the kernel limits how much it writes, and neither side can
wait for the other.
"""

from __future__ import annotations

import os
import resource
import select
import shutil
import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory

from quadloom.crawling.workers.services.balance import CallOutcome
from quadloom.documents.syntaxes.external import MAX_ANSWER_BYTES
from quadloom.model.service import ServiceReply, ServiceRequest
from quadloom.settings import ServiceSettings

FILE = "{file}"
_REFUSED = 422  # the status that stands for a command which failed on a document: another try would fail too
_MESSAGE = 300  # characters of its error output that are told

_running: set[int] = set()  # process groups, for `kill_all`
_lock = threading.Lock()


def program_of(command: Sequence[str]) -> str | None:
    """The path of the program; None if there is none that could be run."""
    found = shutil.which(command[0]) if command else None
    return os.path.abspath(found) if found else None


def run_command(service: ServiceSettings, request: ServiceRequest, body: bytes) -> CallOutcome:
    """Run it and wait for its end, at most `service.timeout` seconds."""
    program = program_of(service.command)
    if program is None:
        return CallOutcome(None, f"{service.command[0]}: there is no such program", absent=True)
    with TemporaryDirectory(prefix="quadloom-") as folder:
        place = Path(folder)
        source = place / "body"
        source.write_bytes(body)
        arguments = [argument.replace(FILE, str(source)) for argument in service.command[1:]]
        takes_file = any(FILE in argument for argument in service.command)
        with (
            open(os.devnull if takes_file else source, "rb") as stdin,
            (place / "output").open("wb") as stdout,
            (place / "errors").open("wb") as stderr,
        ):
            try:
                process = subprocess.Popen(
                    [*_limiter(service), program, *arguments],
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                    cwd=folder,
                    env=_environment(folder, request),
                    start_new_session=True,
                )
            except OSError as error:
                return CallOutcome(None, f"{service.command[0]}: {error.strerror}", absent=True)
            reason = _finished(process, service)
        output = (place / "output").read_bytes()[: MAX_ANSWER_BYTES + 1]
        errors = (place / "errors").read_bytes()[:_MESSAGE].decode("utf-8", "replace").strip()
    if len(output) > MAX_ANSWER_BYTES or reason == _by_signal(signal.SIGXFSZ):
        reason = f"wrote more than {MAX_ANSWER_BYTES} bytes"
    if reason:
        told = f"{service.command[0]} {reason}" + (f": {errors}" if errors else "")
        return CallOutcome(ServiceReply(_REFUSED, "", b""), told)
    return CallOutcome(ServiceReply(200, service.writes, output))


def kill_all() -> None:
    """End every command that runs now, with its children."""
    with _lock:
        for group in _running:
            with suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)


def _finished(process: subprocess.Popen[bytes], service: ServiceSettings) -> str:
    """Wait for the end; why it failed, or an empty text."""
    with _lock:
        _running.add(process.pid)
    try:
        if not _limiter(service):
            _limit(process.pid, service)
        ended = _wait(process, service.timeout)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # also what it has started and left behind
        code = process.wait()
        with _lock:
            _running.discard(process.pid)
    if not ended or code == -signal.SIGXCPU:
        return f"took longer than {service.timeout:g} s"
    return _by_signal(-code) if code < 0 else f"ended with exit code {code}" if code else ""


def _limiter(service: ServiceSettings) -> list[str]:
    """The program of util-linux that sets the caps and becomes the command, so that they hold from its first moment.
    Empty if it is not installed. A function that runs in the child between fork and exec could deadlock, because this
    process has threads."""
    program = shutil.which("prlimit")
    return [program, *(f"--{name}={soft}:{hard}" for name, (soft, hard) in _caps(service).items())] if program else []


def _limit(pid: int, service: ServiceSettings) -> None:
    """Caps from outside, at once after the start. Only Linux can do it."""
    prlimit = getattr(resource, "prlimit", None)
    if prlimit is None:
        return
    with suppress(ProcessLookupError):
        for name, cap in _caps(service).items():
            prlimit(pid, getattr(resource, f"RLIMIT_{name.upper()}"), cap)


def _caps(service: ServiceSettings) -> dict[str, tuple[int, int]]:
    """Soft and hard limits by their names in the kernel."""
    seconds, size = ceil(service.timeout) + 1, MAX_ANSWER_BYTES + 1
    memory = service.memory
    return {"as": (memory, memory), "fsize": (size, size), "cpu": (seconds, seconds + 1), "core": (0, 0)}


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it ended in time. A descriptor of the process is waited for; `Popen.wait` would look every 50 ms."""
    if not hasattr(os, "pidfd_open"):
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(seconds * 1000))
    finally:
        os.close(descriptor)


def _environment(folder: str, request: ServiceRequest) -> dict[str, str]:
    given = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    own = {"HOME": folder, "TMPDIR": folder, "QUADLOOM_URL": request.url, "QUADLOOM_TYPE": request.media_type}
    return {**given, **{name: value.replace("\0", "") for name, value in own.items()}}


def _by_signal(number: int) -> str:
    return f"was ended by signal {number}"
