"""One request to the fake web and its answer, free of sockets."""

from __future__ import annotations

from typing import NamedTuple


class FakeRequest(NamedTuple):
    """What matters of a request. `attempt` counts earlier requests for the same target: flaky pages get well."""

    host: str  # the Host header
    target: str  # path and query as sent
    accept: str = ""
    if_none_match: str = ""
    if_modified_since: str = ""
    attempt: int = 0


class FakeResponse(NamedTuple):
    """A response before content coding. `delay` is how long a slow page lets its reader wait, in seconds."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes
    delay: float = 0.0
    cacheable: bool = True

    def header(self, name: str) -> str:
        return next((value for key, value in self.headers if key == name), "")
