"""libcurl's multi interface driven by epoll: the cost of a step depends on the ready sockets, not on all of them.

`curl_multi_perform` checks every handle each time; with 300 sockets, of which three are ready, that is most of the
work of a fetcher. Here libcurl names the sockets it waits for (`M_SOCKETFUNCTION`) and the time at which it has to be
called anyway (`M_TIMERFUNCTION`), and epoll does the waiting.
"""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

import pycurl

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}


class FinishedTransfer(NamedTuple):
    """A handle, libcurl's error code (0 = success) and the text of the error."""

    curl: pycurl.Curl
    code: int
    text: str


class CurlLoop:
    """`add` handles, `step` until they come back. `watch` adds a descriptor of the caller to the same wait."""

    def __init__(self, connections: int, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._epoll = select.epoll()
        self._sockets: set[int] = set()
        self._watched: dict[int, Callable[[], None]] = {}
        self._due: float | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, connections)
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections)
        self._multi.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)

    def add(self, curl: pycurl.Curl) -> None:
        self._multi.add_handle(curl)

    def remove(self, curl: pycurl.Curl) -> None:
        self._multi.remove_handle(curl)

    def watch(self, descriptor: int, callback: Callable[[], None]) -> None:
        self._watched[descriptor] = callback
        self._epoll.register(descriptor, select.EPOLLIN)

    def step(self, timeout: float) -> list[FinishedTransfer]:
        """Wait at most `timeout` seconds for an event; return the handles that are done, already removed."""
        if self._due is not None:
            timeout = min(timeout, max(0.0, self._due - self._monotonic()))
        act = self._multi.socket_action
        for descriptor, events in self._epoll.poll(timeout):
            if descriptor in self._sockets:
                mask = 0
                if events & (select.EPOLLIN | select.EPOLLHUP | select.EPOLLERR):
                    mask |= pycurl.CSELECT_IN
                if events & select.EPOLLOUT:
                    mask |= pycurl.CSELECT_OUT
                if events & select.EPOLLERR:
                    mask |= pycurl.CSELECT_ERR
                act(descriptor, mask)
            elif descriptor in self._watched:
                self._watched[descriptor]()
        if self._due is not None and self._due <= self._monotonic():
            self._due = None
            act(pycurl.SOCKET_TIMEOUT, 0)
        return self._finished()

    def close(self) -> None:
        """Close all connections. Handles still inside must have been removed."""
        self._multi.close()
        self._epoll.close()

    def _finished(self) -> list[FinishedTransfer]:
        done: list[FinishedTransfer] = []
        while True:
            queued, succeeded, failed = self._multi.info_read()
            done.extend(FinishedTransfer(curl, 0, "") for curl in succeeded)
            done.extend(FinishedTransfer(*failure) for failure in failed)
            if not queued:
                break
        for curl, _, _ in done:
            self._multi.remove_handle(curl)
        return done

    def _on_socket(self, what: int, descriptor: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            self._sockets.discard(descriptor)
            with suppress(OSError):  # closed already: the kernel has removed it from the set
                self._epoll.unregister(descriptor)
        elif descriptor in self._sockets:
            self._epoll.modify(descriptor, _EVENTS[what])
        else:
            self._sockets.add(descriptor)
            self._epoll.register(descriptor, _EVENTS[what])

    def _on_timer(self, milliseconds: int) -> None:
        self._due = None if milliseconds < 0 else self._monotonic() + milliseconds / 1000
