"""Listening sockets for each way of addressing: one address, an address per host, or a port per host."""

from __future__ import annotations

import socket

from quadloom_lab.fakeweb.sites.hosts import plan_hosts
from quadloom_lab.fakeweb.sites.layout import Layout
from quadloom_lab.fakeweb.sites.spec import WebSpec

_TRIES = 50


def listen(spec: WebSpec) -> tuple[list[socket.socket], int]:
    """Bound sockets and the (first) port. Port 0 looks for one that is free on all the addresses that are needed."""
    count = len(plan_hosts(spec))
    for _ in range(_TRIES if spec.port == 0 else 1):
        sockets: list[socket.socket] = []
        try:
            first = _bind(_address(spec, 0), spec.port)
            sockets.append(first)
            port: int = first.getsockname()[1]
            for index in range(1, count):
                if spec.addressing == "ports":
                    sockets.append(_bind("127.0.0.1", port + index))
                elif spec.addressing == "addresses" or spec.spread:
                    sockets.append(_bind(_address(spec, index), port))
            return sockets, port
        except OSError:
            for sock in sockets:
                sock.close()
            if spec.port:
                raise
    raise OSError(f"no free port for {count} hosts after {_TRIES} tries")


def _address(spec: WebSpec, index: int) -> str:
    return Layout.address(index) if spec.addressing == "addresses" or spec.spread else "127.0.0.1"


def _bind(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((address, port))
        sock.listen(1024)
    except (OSError, OverflowError) as error:
        sock.close()
        raise OSError(str(error)) from error
    sock.setblocking(False)
    return sock
