"""Sorts an RDF file into a scratch store, in a process of its own.

Run as `python -m quadloom.export.loading FOLDER FILE FORMAT PACKING GRAPH`. The native parser is fast and mostly safe,
but a file can still end it: triple terms nested 20,000 deep overflow its stack, an endless line or entities that expand
fill the memory. The owner of a warehouse must survive that, so it starts this process and looks at how it ended.
"""

from __future__ import annotations

import gzip
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pyoxigraph as ox
import zstandard

from quadloom.asking.sparql.result_formats import GRAPH_FORMATS
from quadloom.errors import UsageError

MEMORY = 4 << 30  # address space; a bulk load of any size stays well below
_INVALID = 65  # exit code for a file that breaks its syntax's rules


def load(folder: Path, path: Path, format: str, packing: str, graph: str) -> None:
    """Fill the scratch store at `folder`. Raises `UsageError` where the file cannot be read, with its line if known."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", __name__, str(folder), str(path), format, packing, graph],
        capture_output=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(part for part in sys.path if part)},
    )  # fmt: skip
    if done.returncode == 0:
        return
    last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    if done.returncode == _INVALID:
        raise UsageError(
            f"{path.name} is not valid {format}: {last}",
            hint="nothing of this file was imported; correct the line and try again",
        )
    cause = f"signal {-done.returncode}" if done.returncode < 0 else last[:300] or f"exit code {done.returncode}"
    raise UsageError(
        f"{path.name} ended its reader ({cause})",
        hint="nothing of this file was imported; it nests too deeply, or needs more than 4 GiB of memory",
    )


def main() -> None:
    folder, name, format, packing, graph = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    scratch = ox.Store(folder)
    target = ox.NamedNode(graph) if graph else None
    try:
        with _unpacked(Path(name), packing) as stream:
            scratch.bulk_load(stream, GRAPH_FORMATS[format], to_graph=target, lenient=True)
    except (SyntaxError, EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
        place = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        sys.stderr.write(f"{words}{place}".replace("\n", " ") + "\n")
        sys.exit(_INVALID)


def _unpacked(path: Path, packing: str) -> BinaryIO:
    if packing == "gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile reads like any binary file
    if packing == "zst":
        stream: BinaryIO = zstandard.open(path, "rb")
        return stream
    return path.open("rb")


if __name__ == "__main__":
    main()
