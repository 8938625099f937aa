"""Files and byte ranges from the web and from buckets, as files of this machine."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import pycurl
from msgspec.structs import replace

from quadloom.errors import StoreError
from quadloom.fetching.guard import Guard
from quadloom.maintenance.lake.extraction.messages import ByteRange
from quadloom.settings import Settings
from quadloom.stores.archive.s3_bucket import S3Bucket, address_of

_TRIES = 4
_WEB = pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS
_REFUSED = -1  # CURL_SOCKET_BAD
_PAUSE = 1.0  # seconds before the second try, then twice as long each time
_SLOW_BYTES, _SLOW_SECONDS = 1000, 60  # a server that sends less for so long is given up
_OPTIONS = {
    pycurl.FOLLOWLOCATION: 1, pycurl.MAXREDIRS: 5, pycurl.PROTOCOLS: _WEB, pycurl.REDIR_PROTOCOLS: _WEB,
    pycurl.CONNECTTIMEOUT: 30, pycurl.LOW_SPEED_LIMIT: _SLOW_BYTES, pycurl.LOW_SPEED_TIME: _SLOW_SECONDS,
    pycurl.NOSIGNAL: 1, pycurl.FAILONERROR: 1, pycurl.NOPROXY: "*", pycurl.USERAGENT: "quadloom",
}  # fmt: skip
_GAP = 256 << 10  # bytes between two ranges that are read rather than asked for separately
_MOST = 64 << 20  # bytes of one request for ranges


def is_remote(name: str) -> bool:
    return name.startswith(("https://", "http://", "s3://"))


def download(name: str, target: Path, ranges: Sequence[ByteRange], settings: Settings) -> None:
    """Write a file, or only these ranges of it, one behind the other. Raises `StoreError`. Addresses
    that are not public are refused unless `guard.allow` has them."""
    if name.startswith("s3://"):
        _from_bucket(name, target, ranges, settings)
        return
    with target.open("wb") as file:
        client = _Client(settings)
        if not ranges:
            client.get(name, "", file)
        for run in joined(ranges):
            part = target.with_name(f"{target.name}.range")
            with part.open("wb+") as piece:
                client.get(name, f"{run[0].offset}-{run[-1].end - 1}", piece)
                _copy(piece, run, run[0].offset, file)


def joined(ranges: Sequence[ByteRange]) -> list[list[ByteRange]]:
    """Ranges in the order of the file, those that are close together in one list: one request reads them."""
    runs: list[list[ByteRange]] = []
    for one in sorted(ranges):
        run = runs[-1] if runs else []
        if run and one.offset - run[-1].end <= _GAP and one.end - run[0].offset <= _MOST:
            run.append(one)
        else:
            runs.append([one])
    return runs


def copy_ranges(source: Path, target: Path, ranges: Sequence[ByteRange]) -> None:
    """The same from a file of this machine."""
    with source.open("rb") as file, target.open("wb") as copy:
        _copy(file, sorted(ranges), 0, copy)


def _copy(file: BinaryIO, ranges: Sequence[ByteRange], begin: int, target: BinaryIO) -> None:
    for one in ranges:
        file.seek(one.offset - begin)
        target.write(file.read(one.length))


def _from_bucket(name: str, target: Path, ranges: Sequence[ByteRange], settings: Settings) -> None:
    parts = urlsplit(name)
    stores = replace(settings.stores, archive=f"s3://{parts.netloc}")
    bucket = S3Bucket(address_of(replace(settings, stores=stores)))
    key = parts.path.lstrip("/")
    if not ranges:
        bucket.download(key, target)
        return
    with target.open("wb") as file:
        for run in joined(ranges):
            data = bucket.read(key, run[0].offset, run[-1].end - run[0].offset)
            for one in run:
                begin = one.offset - run[0].offset
                file.write(data[begin : begin + one.length])


class _Client:
    """One connection, which is used again."""

    def __init__(self, settings: Settings) -> None:
        self._curl = pycurl.Curl()
        self._guard = Guard(settings.guard)
        self._refused = ""
        for option, value in _OPTIONS.items():
            self._curl.setopt(option, value)
        self._curl.setopt(pycurl.OPENSOCKETFUNCTION, self._open)

    def get(self, url: str, bytes_wanted: str, file: BinaryIO) -> None:
        self._curl.setopt(pycurl.URL, url)
        self._curl.setopt(pycurl.RANGE, bytes_wanted) if bytes_wanted else self._curl.unsetopt(pycurl.RANGE)
        self._curl.setopt(pycurl.WRITEDATA, file)
        error = ""
        for number in range(_TRIES):
            if number:
                time.sleep(_PAUSE * 2 ** (number - 1))
            file.seek(0)
            file.truncate()
            try:
                self._curl.perform()
            except pycurl.error as failed:
                error = self._refused or str(failed.args[1])
                if self._refused or 400 <= self._curl.getinfo(pycurl.RESPONSE_CODE) < 500:
                    break
                continue
            if bytes_wanted and self._curl.getinfo(pycurl.RESPONSE_CODE) != 206:
                raise StoreError(f"{url}: the server ignores ranges", hint="download the file, and give its path")
            return
        raise StoreError(f"{url} was not read: {error}", hint="to continue later, use --resume")

    def _open(self, _purpose: int, address: tuple[int, int, int, tuple[str, int]]) -> socket.socket | int:
        family, kind, protocol, (host, *_) = address
        verdict = self._guard.address_verdict(host)
        if verdict is not None:
            self._refused = f"{host} is {verdict}"
            return _REFUSED
        return socket.socket(family, kind, protocol)
