"""`/export.*`, the whole warehouse or a part of it as one stream, and `/.well-known/void`, a description of it.

A dump is written by a thread with a view of its own, so it is consistent while a crawl writes and blocks no other
reader. It goes through a short queue: a slow client slows the dump down, and a client that leaves ends it. A few dumps
run at a time; who asks for one more gets 503.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

from starlette.responses import Response

from quadloom.asking.export.description import dataset_description
from quadloom.asking.export.dump import parse_format
from quadloom.asking.export.selection import Selection
from quadloom.asking.search import moment
from quadloom.asking.sparql.prefixes import type_iris
from quadloom.asking.sparql.result_formats import GRAPH_MEDIA
from quadloom.errors import QuadloomError, UsageError
from quadloom.process import limits
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom.web.api.rdf_responses import negotiated_graph
from quadloom.web.server.block_stream import BlockStream
from quadloom.web.server.errors import HttpError
from quadloom.web.server.requests import WebRequest

_MEDIA = {
    **GRAPH_MEDIA,
    "parquet": "application/vnd.apache.parquet",
    "warc": "application/warc",
    "wacz": "application/wacz",
    "markdown": "application/x-ndjson",
    "chunks": "application/x-ndjson",
}
_PACKED = {"gz": "application/gzip", "zst": "application/zstd"}
PRODUCES = tuple(media.partition(";")[0] for media in (*_MEDIA.values(), *_PACKED.values()))
_BLOCK_BYTES = 256 * 1024
_MAX_BLOCKS = 2
_RETRY_SECONDS = 10


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
    exports = request.site.exports
    if not exports.acquire(blocking=False):
        raise HttpError(
            503,
            "too many exports are being read right now",
            hint=f"try again in {_RETRY_SECONDS} s, or run `quadloom export` beside the site",
            headers={"Retry-After": str(_RETRY_SECONDS)},
        )
    dump = DumpStream(request.site.path, request.site.settings, format, selection, exports.release)
    first = dump.next()  # an export that fails at once is answered with an error, not with a truncated response
    return BlockStream(
        request.site.exporting,
        first,
        dump.next,
        dump.abandon,
        media_type=_PACKED.get(packing) or _MEDIA[name] if name in _MEDIA else "text/turtle",
        headers={"Content-Disposition": f'attachment; filename="quadloom.{format}"', "Cache-Control": "no-store"},
    )


class DumpStream:
    """A file that one thread writes while another takes blocks out of it. `ended` is called when the writer ends."""

    def __init__(
        self, path: Path, settings: Settings, format: str, selection: Selection, ended: Callable[[], None]
    ) -> None:
        self._blocks: queue.Queue[bytes | QuadloomError] = queue.Queue(_MAX_BLOCKS)
        self._part = bytearray()
        self._abandoned = threading.Event()
        self._position = 0
        arguments = (path, settings, format, selection, ended)
        threading.Thread(target=self._run, args=arguments, name="export", daemon=True).start()

    def _run(
        self, path: Path, settings: Settings, format: str, selection: Selection, ended: Callable[[], None]
    ) -> None:
        try:
            self._put(self._write_all(path, settings, format, selection))
        except BrokenPipeError:
            self._part.clear()
        finally:
            limits.trim_memory()
            ended()

    def _write_all(self, path: Path, settings: Settings, format: str, selection: Selection) -> bytes | QuadloomError:
        """Write the dump. Returns the last item for the reader: nothing, or the error that ended the dump."""
        try:
            with Warehouse.read(path, settings=settings) as warehouse:
                warehouse.maintenance.export(cast("BinaryIO", self), format=format, selection=selection)
            self.flush()
        except BrokenPipeError:
            raise
        except QuadloomError as error:
            return error
        except Exception as error:  # noqa: BLE001  the reader waits for this thread, and has to hear of every end
            return QuadloomError(f"the export failed: {error}", hint="the log of the server has more")
        return b""

    def write(self, data: bytes) -> int:
        self._part += data
        self._position += len(data)
        while len(self._part) >= _BLOCK_BYTES:
            block = bytes(self._part[:_BLOCK_BYTES])
            del self._part[:_BLOCK_BYTES]
            self._put(block)
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
        """The client has left: the writer stops at its next block, and a reader that waits for one gets the end."""
        self._abandoned.set()
        with suppress(queue.Full):
            self._blocks.put_nowait(b"")  # if the queue is full, no reader waits


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
