"""`quadloom contexts`: JSON-LD contexts kept beside the configuration, so that no page makes us ask for them."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from quadloom.cli.session import Session, session
from quadloom.errors import NothingFound, UsageError
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.fetching.transport import ACCEPT_CONTEXT
from quadloom.syntaxes.jsonld.loader import ContextFolder

contexts = App(name="contexts", help="Keep JSON-LD contexts in a folder, instead of asking for them.")


@contexts.command
def add(url: str, file: Path | None = None) -> None:
    """Keep the context of an address, as its server gives it now or as a file has it.

    Parameters
    ----------
    url
        address under which documents name the context
    file
        read the context from this file instead of the address
    """
    s = session()
    folder = _folder(s)
    most = s.settings.limits.context_bytes
    if file is not None:
        if not file.is_file():
            raise UsageError(f"there is no file {file}", hint="name a JSON file with a member @context")
        body = file.read_bytes()
    else:
        with DocumentFetcher(s.settings) as transport:
            body = transport.fetch_one(url, accept=ACCEPT_CONTEXT, max_bytes=most + 1).body
    path = folder.add(url, body, max_bytes=most)
    if s.json:
        s.emit({"url": url, "file": path})
    else:
        s.say(f"kept as {path}")


@contexts.command
def remove(url: str) -> None:
    """Forget the context of an address; it is then asked for again, where transform.contexts allows it.

    Parameters
    ----------
    url
        address under which documents name the context
    """
    s = session()
    if not _folder(s).remove(url):
        raise NothingFound(f"no context is kept for {url}", hint="`quadloom contexts list` shows all")


@contexts.command(name="list")
def list_() -> None:
    """List the addresses whose contexts are kept."""
    s = session()
    addresses = _folder(s).addresses()
    if s.json:
        s.emit(addresses)
    for address in () if s.json else addresses:
        s.write(address)


def _folder(s: Session) -> ContextFolder:
    folder = s.settings.transform.contexts_folder
    if not folder:
        raise UsageError(
            "no folder for contexts is set",
            hint='write contexts_folder = "contexts" below [transform]',
        )
    return ContextFolder(Path(folder))
