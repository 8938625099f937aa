"""JSON-LD contexts that the user keeps in a folder: read at once, offline, and always in the version that was chosen.

Only schema.org's context comes with Quadloom. Others are their publishers' texts under their publishers' licences, so
the user decides which to keep. A file's name is the context's address, percent-encoded, with `.jsonld`; so a folder can
be filled by hand, copied, or put under version control.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from urllib.parse import quote, unquote

import msgspec

from quadloom.errors import SyntaxInvalid, UsageError
from quadloom.syntaxes.jsonld.loader import ContextLoader
from quadloom.syntaxes.registry import Loader

_SUFFIX = ".jsonld"
_LONGEST = 250 - len(_SUFFIX)  # bytes of a file name, of the 255 that file systems allow
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


class ContextFolder:
    """Addresses that differ only in scheme, fragment or a final slash are one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, url: str) -> bytes | None:
        """The document kept for an address."""
        if not _SCHEME.match(url):
            return None
        name = _name(url)
        if len(name) > _LONGEST:
            return None
        try:
            return (self._folder / f"{name}{_SUFFIX}").read_bytes()
        except OSError:
            return None

    def add(self, url: str, document: bytes, *, max_bytes: int) -> Path:
        """Keep a document that has a context in it. Raises `UsageError` for any other."""
        if not _SCHEME.match(url) or len(_name(url)) > _LONGEST:
            raise UsageError(f"{url[:200]} cannot be the address of a context", hint="give an http(s) URL")
        loader = ContextLoader(lambda _url: document, max_bytes=max_bytes)
        try:
            context = loader.load(url).local()
        except SyntaxInvalid as error:
            raise UsageError(
                f"no context for {url}: {error.message}", hint='the document must be JSON with a member "@context"'
            ) from None
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{_name(url)}{_SUFFIX}"
        path.write_bytes(msgspec.json.format(msgspec.json.encode({"@context": context}), indent=1))
        return path

    def remove(self, url: str) -> bool:
        """False = there was none."""
        path = self._folder / f"{_name(url)}{_SUFFIX}"
        known = path.is_file()
        path.unlink(missing_ok=True)
        return known

    def addresses(self) -> list[str]:
        """Of all contexts kept, without their scheme."""
        return sorted(unquote(path.name.removesuffix(_SUFFIX)) for path in self._folder.glob(f"*{_SUFFIX}"))


@lru_cache(maxsize=4)  # the same loader each time, because what it loaded is remembered by it
def with_folder(folder: str, fetch: Loader | None) -> Loader | None:
    """A loader that looks into the folder first, and asks `fetch` for the rest. None where there is neither."""
    if not folder:
        return fetch
    kept = ContextFolder(Path(folder))

    def load(url: str) -> bytes:
        found = kept.find(url)
        if found is not None:
            return found
        if fetch is None:
            raise SyntaxInvalid(f"it is not kept; `quadloom contexts add {url}` keeps it", code="loading-failed")
        return fetch(url)

    return load


def _name(url: str) -> str:
    rest = _SCHEME.sub("", url, count=1).partition("#")[0].rstrip("/")
    host, slash, path = rest.partition("/")
    return quote(f"{host.lower()}{slash}{path}", safe="")
