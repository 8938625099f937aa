"""The seam between the fetch process and whatever answers its requests.

Three implementations pass the same contract suite (`tests/contract/test_transport.py`): libcurl
(`http.transport.CurlTransport`), replay from WARC archives (`replay.ReplayTransport`) and a plain function in the same
process (`in_process.InProcessTransport`). `unit.open_transport` chooses one by URL (`crawl.transport`).
"""

from __future__ import annotations

from typing import Protocol

from quadloom.fetching.request import Done, FetchRequest


class Transport(Protocol):
    """Answers requests. `submit` them, then call `step` until `in_flight` is 0. One thread; only `wake` from any.

    Guarantees:

    - Each request is answered exactly once, with a `Page` or a `Failure`, from within a later `step`; unless `close`
      comes first, after which no request is answered.
    - Nothing is raised for what a server does: the web's errors are `Failure`s with a kind and a message.
    - Every limit of `settings.limits` holds, on decoded bytes; a longer body is cut, with a finding.
    - No connection to an address, scheme or port that `settings.guard` refuses, at the first request or at any hop.
    - No request begins before its `not_before`.
    - A redirect is returned as a page with its 3xx status and one hop, unless `redirects` of the request allows
      more; then each hop passes the same checks as the first request.
    """

    @property
    def in_flight(self) -> int:
        """Requests that were submitted and not answered yet."""
        ...

    def submit(self, request: FetchRequest, done: Done) -> None:
        """Accept a request. `done` is called from a later `step`, never from here."""
        ...

    def step(self, timeout: float = 0.0) -> int:
        """Advance all requests, waiting at most `timeout` seconds for one. Returns how many were answered."""
        ...

    def wake(self) -> None:
        """End a running `step` early; may be called from another thread."""
        ...

    def close(self) -> None:
        """Drop what is in flight without answering it, and release everything."""
        ...
