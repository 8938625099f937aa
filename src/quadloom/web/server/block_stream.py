"""Responses whose blocks come from a thread that may wait: for a dump that is written, or for a query process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from quadloom.web.server.lanes import Lane


class BlockStream(StreamingResponse):
    """Sends `first` and then what `next_block` returns, up to an empty block. Both functions run in `lane`, whose
    threads wait for nothing else; `close` is called however the response ends, also before its first block, and has to
    end a `next_block` that waits."""

    def __init__(
        self,
        lane: Lane,
        first: bytes,
        next_block: Callable[[], bytes],
        close: Callable[[], None],
        *,
        media_type: str,
        headers: dict[str, str],
    ) -> None:
        super().__init__(_blocks(lane, first, next_block), media_type=media_type, headers=headers)
        self._lane = lane
        self._close = close

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            await asyncio.shield(self._lane.run(self._close))


async def _blocks(lane: Lane, block: bytes, next_block: Callable[[], bytes]) -> AsyncIterator[bytes]:
    while block:
        yield block
        block = await lane.run(next_block)
