"""Remote JSON-LD contexts: bundled ones at no cost, those in the user's folder offline, others by a bounded loader.

Only schema.org's context comes with Quadloom. Others are their publishers' texts under their publishers' licences, so
the user decides which to keep in a folder (`ContextFolder`), always in the version that was chosen. A file's name is
the context's address, percent-encoded, with `.jsonld`; so a folder can be filled by hand, copied, or put under version
control.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import quote, unquote

import msgspec

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld import contexts
from quadloom.documents.syntaxes.jsonld import json as jsonld_json
from quadloom.documents.syntaxes.jsonld.context import RemoteContext, is_independent
from quadloom.documents.syntaxes.jsonld.json import scripts_of
from quadloom.documents.syntaxes.jsonld.terms import invalid
from quadloom.documents.syntaxes.registry import Loader
from quadloom.errors import QuadloomError, SyntaxInvalid, UsageError
from quadloom.model.lru import LruCache

_LINK = re.compile(r'<([^>]*)>((?:\s*;\s*[\w-]+\s*=\s*(?:"[^"]*"|[^\s;,"]+))*)')
_PARAMETER = re.compile(r';\s*([\w-]+)\s*=\s*(?:"([^"]*)"|([^\s;,"]+))')


class LoadedDocument(msgspec.Struct, frozen=True):
    """A loader's complete answer: the address after redirects, the media type and the Link headers, if known."""

    body: bytes
    url: str
    content_type: str = ""
    links: tuple[str, ...] = ()


class _LoadFailure(NamedTuple):
    """Why a context could not be loaded. Not the exception, which holds the frames of every page it goes through."""

    message: str
    code: str


Fetch: TypeAlias = Callable[[str], bytes | LoadedDocument]


class ContextLoader:
    """Dereferences contexts for many documents; `start()` resets the count of loads for a new document.

    At most `loads` contexts are fetched for one document, none longer than `max_bytes`; `cached` of them stay in
    memory, the least recently used goes first. Failures are cached too, so a thousand copies of a page ask a dead
    server once. Without `fetch` only bundled contexts are known.
    """

    def __init__(
        self, fetch: Fetch | None = None, *, loads: int = 8, max_bytes: int = 1024 * 1024, cached: int = 64
    ) -> None:
        self._fetch = fetch
        self._loads = loads
        self._max_bytes = max_bytes
        self._cache = LruCache[str, RemoteContext | _LoadFailure](cached)
        self._spent = 0

    def start(self) -> None:
        self._spent = 0

    def load(self, url: str) -> RemoteContext:
        """The context at `url`. Raises `SyntaxInvalid` with the specification's code."""
        known = contexts.find(url)
        if known is not None:
            return RemoteContext(url=known.url, local=known.local, shared=known.active)
        answer = self._cache.get(url)
        if answer is None:
            answer = self._attempt(url)
            self._cache.put(url, answer)
        if isinstance(answer, _LoadFailure):
            raise SyntaxInvalid(answer.message, code=answer.code)
        return answer

    def _attempt(self, url: str) -> RemoteContext | _LoadFailure:
        if self._fetch is None:
            raise invalid("loading remote context failed", f"{url} is not a bundled context")
        if self._spent >= self._loads:
            raise invalid("loading remote context failed", f"more than {self._loads} contexts")
        self._spent += 1
        try:
            loaded = fetch_document(self._fetch, url)
            context = self._context_of(loaded)
            return RemoteContext(url=loaded.url, local=lambda: context, independent=is_independent(context))
        except SyntaxInvalid as error:
            return _LoadFailure(error.message, error.code)

    def _context_of(self, loaded: LoadedDocument) -> jsonld_json.Json:
        if len(loaded.body) > self._max_bytes:
            raise invalid("loading remote context failed", f"{loaded.url} is longer than {self._max_bytes} bytes")
        try:
            body = _json_of(loaded)
            document = jsonld_json.read(body)
        except SyntaxInvalid as error:
            raise invalid("loading remote context failed", f"{loaded.url}: {error.message}") from None
        if not isinstance(document, dict) or "@context" not in document:
            raise invalid("invalid remote context", loaded.url)
        return document["@context"]


def fetch_document(fetch: Fetch, url: str) -> LoadedDocument:
    """Ask `fetch`; follow a `Link: rel="alternate"; type="application/ld+json"` once if the answer is not JSON."""
    loaded = _fetched(fetch, url)
    if loaded.links and not is_json(loaded.content_type):
        for target, parameters in links_of(loaded.links):
            rels = parameters.get("rel", "").split()
            if "alternate" in rels and parameters.get("type") == "application/ld+json":
                return _fetched(fetch, jsonld_iri.resolve(loaded.url, target))
    return loaded


def _fetched(fetch: Fetch, url: str) -> LoadedDocument:
    try:
        answer = fetch(url)
    except (OSError, LookupError, ValueError, QuadloomError) as error:
        raise invalid("loading remote context failed", f"{url}: {error}") from None
    return answer if isinstance(answer, LoadedDocument) else LoadedDocument(body=answer, url=url)


def is_json(content_type: str) -> bool:
    essence = content_type.partition(";")[0].strip().lower()
    return essence == "application/json" or essence.endswith("+json")


def is_html(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() in ("text/html", "application/xhtml+xml")


def links_of(headers: tuple[str, ...]) -> list[tuple[str, dict[str, str]]]:
    """Target and parameters of each link in Link headers (RFC 8288)."""
    found: list[tuple[str, dict[str, str]]] = []
    for header in headers:
        for target, text in _LINK.findall(header[:8192]):
            parameters = {name.lower(): quoted or plain for name, quoted, plain in _PARAMETER.findall(text)}
            found.append((target, parameters))
    return found


def _json_of(loaded: LoadedDocument) -> bytes:
    """The JSON text of an answer; of an HTML page its first script (or the one its fragment names)."""
    looks_like_html = not loaded.content_type and loaded.body.lstrip()[:1] == b"<"
    if not is_html(loaded.content_type) and not looks_like_html:
        return loaded.body
    texts = scripts_of(loaded.body, loaded.url.partition("#")[2]).texts
    if not texts:
        raise invalid("loading document failed", "no JSON-LD script")
    return texts[0].encode("utf-8", "surrogatepass")


_SUFFIX = ".jsonld"
_LONGEST = 250 - len(_SUFFIX)  # bytes of a file name, of the 255 that file systems allow
_SCHEME = re.compile(r"https?://", re.IGNORECASE)


class ContextFolder:
    """Addresses that differ only in scheme, fragment or a final slash are one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, url: str) -> bytes | None:
        """The document in the folder for an address, or None."""
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
        """Write a document that has a context in it to the folder. Raises `UsageError` for any other."""
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
        """Delete a context; False = there was none."""
        path = self._folder / f"{_name(url)}{_SUFFIX}"
        known = path.is_file()
        path.unlink(missing_ok=True)
        return known

    def addresses(self) -> list[str]:
        """Addresses of all contexts in the folder, without their scheme."""
        return sorted(unquote(path.name.removesuffix(_SUFFIX)) for path in self._folder.glob(f"*{_SUFFIX}"))


@lru_cache(maxsize=4)  # the same loader each time, because it caches what it loaded
def with_folder(folder: str, fetch: Loader | None) -> Loader | None:
    """A loader that tries the folder first and then `fetch`. None if there is neither."""
    if not folder:
        return fetch
    contexts_folder = ContextFolder(Path(folder))

    def load(url: str) -> bytes:
        found = contexts_folder.find(url)
        if found is not None:
            return found
        if fetch is None:
            raise SyntaxInvalid(
                f"it is not in the folder of contexts; to add it: `quadloom contexts add {url}`", code="loading-failed"
            )
        return fetch(url)

    return load


def _name(url: str) -> str:
    rest = _SCHEME.sub("", url, count=1).partition("#")[0].rstrip("/")
    host, slash, path = rest.partition("/")
    return quote(f"{host.lower()}{slash}{path}", safe="")
