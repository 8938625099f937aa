"""What was transformed and is indexed or extracted by another process: one file per page, beside the catalog.

The catalog says which pages wait for index and extract, and the archive has what they were made from. So a file here
only saves the second transformation: one that is missing, cut or of another version costs CPU, never a page. Nothing
is synced for that reason.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec
from xxhash import xxh3_64_intdigest

from quadloom.model import wire
from quadloom.model.page_result import PageResult
from quadloom.settings import Settings

_VERSION = 2


class _SpooledPage(msgspec.Struct, frozen=True, array_like=True):
    version: int
    fetched_at: float
    strategies: tuple[str, ...]
    result: bytes
    check: int


class ResultSpool:
    """`strategies`: the link strategies of this process. Links that others found by other strategies do not count."""

    def __init__(self, warehouse: Path, settings: Settings) -> None:
        self._folder = Path(settings.stores.spool) if settings.stores.spool else warehouse / "spool"
        self.strategies = tuple(settings.crawl.strategies)

    def put(self, fingerprint: int, fetched_at: float, result: PageResult) -> None:
        """Keep the result; it replaces that of an older version. A full disk is no error."""
        path = self._path(fingerprint)
        data = wire.encode(result)
        page = _SpooledPage(_VERSION, fetched_at, self.strategies, data, xxh3_64_intdigest(data))
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix(f".{os.getpid()}")
            part.write_bytes(wire.encode(page))
            part.replace(path)

    def get(self, fingerprint: int, fetched_at: float, *, links: bool = False) -> PageResult | None:
        """The result of this version. None = there is none, or with `links`, none by the same strategies."""
        try:
            page = wire.decode(self._path(fingerprint).read_bytes(), _SpooledPage)
            if (
                page.version != _VERSION
                or page.fetched_at != fetched_at
                or page.check != xxh3_64_intdigest(page.result)
            ):
                return None
            if links and page.strategies != self.strategies:
                return None
            return wire.decode(page.result, PageResult)
        except (OSError, msgspec.MsgspecError):
            return None

    def remove(self, fingerprints: Sequence[int]) -> None:
        for fingerprint in fingerprints:
            with contextlib.suppress(OSError):
                self._path(fingerprint).unlink()

    def clear(self) -> None:
        """Remove everything: no page owes a phase."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, fingerprint: int) -> Path:
        name = f"{fingerprint & 0xFFFF_FFFF_FFFF_FFFF:016x}"
        return self._folder / name[:2] / name
