"""`/export.*`, the whole warehouse or a part of it as one stream, and `/.well-known/void`, a description of it.

A dump is written by a thread with a view of its own, so it is consistent while a crawl writes and blocks no other
reader. It goes through a short queue: a slow client slows the dump down, and a client that leaves ends it.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import BinaryIO, cast

from starlette.responses import Response, StreamingResponse

from quadloom.asking.export.description import dataset_description
from quadloom.asking.export.dump import parse_format
from quadloom.asking.export.selection import Selection
from quadloom.asking.search import moment
from quadloom.asking.sparql.prefixes import type_iris
from quadloom.asking.sparql.result_formats import GRAPH_MEDIA
from quadloom.errors import QuadloomError, UsageError
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom.web.api.rdf_responses import negotiated_graph
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest

_MEDIA = {
    **GRAPH_MEDIA,
    "parquet": "application/vnd.apache.parquet",
    "warc": "application/warc",
    "markdown": "application/x-ndjson",
}
_PACKED = {"gz": "application/gzip", "zst": "application/zstd"}
PRODUCES = tuple(media.partition(";")[0] for media in (*_MEDIA.values(), *_PACKED.values()))
_BLOCK_BYTES = 256 * 1024
_MAX_BLOCKS = 8


def export(request: WebRequest) -> Response:
    format = request.path("format")
    try:
        name, packing = parse_format(format)
    except UsageError as error:
        raise HttpError(404, error.message, hint=error.hint) from None
    selection = Selection(
        sites=tuple(request.texts("site")),
        types=tuple(iri for name in request.texts("type") for iri in type_iris(name)),
        since=moment(request.text("since")),
        until=moment(request.text("until")),
    )
    dump = DumpStream(request.site.path, request.site.settings, format, selection)
    first = dump.next()  # an export that fails at once is answered with an error, not with a truncated response
    return StreamingResponse(
        _stream(dump, first),
        media_type=_PACKED.get(packing) or _MEDIA[name] if name in _MEDIA else "text/turtle",
        headers={"Content-Disposition": f'attachment; filename="quadloom.{format}"', "Cache-Control": "no-store"},
    )


class DumpStream:
    """A file that one thread writes while another takes blocks out of it."""

    def __init__(self, path: Path, settings: Settings, format: str, selection: Selection) -> None:
        self._blocks: queue.Queue[bytes | QuadloomError] = queue.Queue(_MAX_BLOCKS)
        self._part = bytearray()
        self._abandoned = threading.Event()
        self._position = 0
        arguments = (path, settings, format, selection)
        threading.Thread(target=self._run, args=arguments, name="export", daemon=True).start()

    def _run(self, path: Path, settings: Settings, format: str, selection: Selection) -> None:
        try:
            with Warehouse.read(path, settings=settings) as warehouse:
                warehouse.maintenance.export(cast("BinaryIO", self), format=format, selection=selection)
            self.flush()
        except BrokenPipeError:
            return
        except QuadloomError as error:
            self._put(error)
            return
        self._put(b"")

    def write(self, data: bytes) -> int:
        self._part += data
        self._position += len(data)
        if len(self._part) >= _BLOCK_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        if self._part:
            block, self._part = bytes(self._part), bytearray()
            self._put(block)

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        """Nothing to do: the end is signalled when the whole dump is written."""

    def _put(self, item: bytes | QuadloomError) -> None:
        while True:
            if self._abandoned.is_set():
                raise BrokenPipeError("the client has left")
            try:
                self._blocks.put(item, timeout=0.5)
                return
            except queue.Full:
                continue

    def next(self) -> bytes:
        """The next block, empty at the end. Raises the error that ended the dump."""
        item = self._blocks.get()
        if isinstance(item, QuadloomError):
            raise item
        return item

    def abandon(self) -> None:
        """The client has left: the writer stops at its next block."""
        self._abandoned.set()


async def _stream(dump: DumpStream, block: bytes) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    try:
        while block:
            yield block
            block = await loop.run_in_executor(None, dump.next)
    finally:
        dump.abandon()


def void(request: WebRequest) -> Response:
    """VoID and DCAT, with class and property partitions by use."""
    base = str(request.http.url.replace(path="/", query="", fragment=""))
    turtle = dataset_description(
        request.site.usage.current().summary,
        dataset=f"{base}#dataset",
        title="Data collected by Quadloom",
        endpoint=f"{base}sparql",
        now=request.site.clock(),
    )
    return negotiated_graph(request, turtle, "text/turtle")
