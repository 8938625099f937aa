"""Sorts an RDF file into a scratch store, in a process of its own.

The native parser is fast and mostly safe, but a file can still end it: triple terms nested 20,000 deep overflow its
stack, an endless line or entities that expand fill the memory. The owner of a warehouse must survive that, so a child
process reads the file, and the owner looks at how it ended.
"""

from __future__ import annotations

import gzip
import subprocess
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyoxigraph as ox
import zstandard

from quadloom.asking.sparql.result_formats import GRAPH_FORMATS
from quadloom.errors import UsageError
from quadloom.process.channel import Channel, ChannelClosed, run, start

MEMORY = 4 << 30  # address space; a bulk load of any size stays well below


class LoadTask(msgspec.Struct, frozen=True):
    """The file to read into the store at `folder`. `packing`: empty, gz or zst. `graph`: for statements without one."""

    folder: str
    path: str
    format: str
    packing: str
    graph: str


class LoadResult(msgspec.Struct, frozen=True):
    """`invalid`: how the file breaks the rules of its syntax. `failure`: what else went wrong. Both empty = loaded."""

    invalid: str = ""
    failure: str = ""


def load(folder: Path, path: Path, format: str, packing: str, graph: str) -> None:
    """Fill the scratch store at `folder`. Raises `UsageError` if the file cannot be read, with its line if known."""
    task = LoadTask(str(folder), str(path), format, packing, graph)
    child = start(__name__, task, address_space=MEMORY, stderr=subprocess.DEVNULL)
    try:
        result = child.channel.receive(LoadResult)
    except ChannelClosed:
        ended = child.wait()
        cause = f"signal {-ended.code}" if ended.code < 0 else "MemoryError" if ended.cause == "memory" else ""
        result = LoadResult(failure=cause or f"exit code {ended.code}")
    finally:
        child.close()
    if result.invalid:
        raise UsageError(
            f"{path.name} is not valid {format}: {result.invalid}",
            hint="nothing of this file was imported; correct the line and try again",
        )
    if result.failure:
        raise UsageError(
            f"{path.name} ended its reader ({result.failure})",
            hint="nothing of this file was imported; it nests too deeply, or needs more than 4 GiB of memory",
        )


def serve(channel: Channel) -> None:
    task = channel.receive(LoadTask)
    try:
        _bulk_load(task)
    except (SyntaxError, EOFError, gzip.BadGzipFile, zstandard.ZstdError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        words = error.msg if isinstance(error, SyntaxError) else str(error)
        channel.send(LoadResult(invalid=f"{words}{line}".replace("\n", " ")))
    except (OSError, ValueError, RuntimeError) as error:
        channel.send(LoadResult(failure=f"{type(error).__name__}: {error}".rpartition("\n")[2][:300]))
    else:
        channel.send(LoadResult())


def _bulk_load(task: LoadTask) -> None:
    scratch = ox.Store(task.folder)  # closed with this frame, before the owner hears of the end and opens it
    target = ox.NamedNode(task.graph) if task.graph else None
    with _unpacked(Path(task.path), task.packing) as stream:
        scratch.bulk_load(stream, GRAPH_FORMATS[task.format], to_graph=target, lenient=True)


def _unpacked(path: Path, packing: str) -> BinaryIO:
    if packing == "gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]  # a GzipFile reads like any binary file
    if packing == "zst":
        stream: BinaryIO = zstandard.open(path, "rb")
        return stream
    return path.open("rb")


if __name__ == "__main__":
    run(serve)
