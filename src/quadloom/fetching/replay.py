"""A transport that answers from WARC archives: a crawl repeated without asking anybody.

A request gets the newest archived response of its URL, at or before `until`, with the time, address and headers of
then. robots.txt is archived like a page. A conditional request gets 304 if its validators are those of that response.
Anything else that can be said about a URL is a `Failure` of kind `not-archived`: it was not fetched then, or only with
an error, which is not archived. A robots.txt that is missing in this way allows everything (`fetcher.robots_row`),
because the archive holds nothing that was disallowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from quadloom.errors import ArchiveDamaged, SettingsError
from quadloom.fetching.in_process import InProcessTransport, matches_validators, not_modified
from quadloom.fetching.transport import Done, FetchRequest, Result, make_failure
from quadloom.model.outcome import ArchiveRef
from quadloom.model.page import Page
from quadloom.process.clock import unix_time
from quadloom.settings import Settings
from quadloom.stores.backends import open_warc_files
from quadloom.stores.protocols.archive import Archive


class ReplayTransport:
    """See `quadloom.fetching.transport.Transport`. The archive is read through once, at the first request."""

    def __init__(
        self,
        settings: Settings,
        archive: Archive,
        *,
        until: float = math.inf,
        clock: Callable[[], float] = unix_time,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        self._archive = archive
        self._until = until
        self._clock = clock
        self._newest: dict[str, _Version] | None = None
        self._transport = InProcessTransport(settings, self._respond, clock=clock, sleep=sleep)

    @property
    def in_flight(self) -> int:
        return self._transport.in_flight

    def submit(self, request: FetchRequest, done: Done) -> None:
        """Accept a request. A later `step` calls `done`."""
        self._transport.submit(request, done)

    def step(self, timeout: float = 0.0) -> int:
        """Answer what is due; if nothing is, wait at most `timeout` seconds for it."""
        return self._transport.step(timeout)

    def wake(self) -> None:
        """End a running `step` early; may be called from another thread."""
        self._transport.wake()

    def close(self) -> None:
        """Drop what is in flight, without calling `done`, and close the archive."""
        self._transport.close()
        self._archive.close()

    def _respond(self, request: FetchRequest) -> Result:
        if self._newest is None:
            self._newest = self._read()
        version = self._newest.get(request.href)
        if version is None or request.method not in ("GET", "HEAD"):
            return self._missing(request, f"{request.method} {request.href} is not in the archive")
        try:
            result = self._archive.get(version.ref)
        except ArchiveDamaged as error:
            return self._missing(request, error.message)
        if isinstance(result, Page) and matches_validators(request, result):
            return not_modified(result)
        return result

    def _read(self) -> dict[str, _Version]:
        newest: dict[str, _Version] = {}
        for ref, record in self._archive.scan():
            old = newest.get(record.url)
            if record.fetched_at <= self._until and (old is None or old.fetched_at <= record.fetched_at):
                newest[record.url] = _Version(record.fetched_at, ref)
        return newest

    def _missing(self, request: FetchRequest, message: str) -> Result:
        return make_failure(request.href, "not-archived", message, fetched_at=self._clock())


class _Version(msgspec.Struct, frozen=True, gc=False):
    fetched_at: float
    ref: ArchiveRef


class ReplaySource(msgspec.Struct, frozen=True):
    """What `crawl.transport = "replay:DIRECTORY?until=TIME"` says. `until` is unix time."""

    directory: Path
    until: float = math.inf

    def archive(self) -> Archive:
        """The WARC files of a warehouse, or of a folder of such files. Raises `SettingsError` if there are none."""
        inner = self.directory / "archive"
        folder = inner if inner.is_dir() else self.directory
        if not any(folder.glob("*.warc.gz*")):
            raise SettingsError(
                f"crawl.transport: there are no WARC files in {folder}",
                hint="name a warehouse, or its archive folder: replay:DIRECTORY",
            )
        return open_warc_files(folder)


def replay_source(settings: Settings) -> ReplaySource | None:
    """The source of a replay, None for `http:`. Raises `SettingsError` for anything else."""
    scheme, _, rest = settings.crawl.transport.partition(":")
    if settings.crawl.transport == "http:":
        return None
    directory, _, until = rest.removeprefix("//").partition("?until=")
    if scheme != "replay" or not directory:
        raise SettingsError(
            f"crawl.transport = {settings.crawl.transport!r} names no transport of this version",
            hint='write "http:", or "replay:DIRECTORY" with a warehouse whose archive answers',
        )
    return ReplaySource(Path(directory), _unix_time(until) if until else math.inf)


def without_pauses(settings: Settings) -> Settings:
    """The settings of a replay: no server is asked, so none has to be spared. Those of a crawl stay as they are."""
    if replay_source(settings) is None:
        return settings
    replace = msgspec.structs.replace
    politeness = replace(settings.politeness, delay=0.0, ip_delay=0.0, adaptive=0.0, max_crawl_delay=0.0)
    sites = [replace(site, delay=None, own=False) for site in settings.site]
    return replace(settings, politeness=politeness, site=sites)


def _unix_time(text: str) -> float:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise SettingsError(
            f"crawl.transport: until={text} is not a time", hint="write it as 2026-01-31 or 2026-01-31T12:00:00Z"
        ) from None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
