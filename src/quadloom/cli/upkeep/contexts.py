"""`quadloom contexts`: JSON-LD contexts in a local folder, so that they are not fetched."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from quadloom.cli.files import bytes_of
from quadloom.cli.session import Session, session
from quadloom.documents.syntaxes.jsonld.loader import ContextFolder
from quadloom.errors import NothingFound, UsageError
from quadloom.fetching.http.documents import DocumentFetcher
from quadloom.fetching.transport import ACCEPT_CONTEXT

contexts = App(name="contexts")


@contexts.command
def add(url: str, file: Path | None = None) -> None:
    """Store the context of a URL, as its server sends it now or from a file.

    Parameters
    ----------
    url
        URL by which documents refer to the context
    file
        read the context from this file instead of fetching it
    """
    s = session()
    folder = _folder(s)
    most = s.settings.limits.context_bytes
    if file is not None:
        body = bytes_of(file, "give a JSON file with a member @context")
    else:
        with DocumentFetcher(s.settings) as transport:
            body = transport.fetch_one(url, accept=ACCEPT_CONTEXT, max_bytes=most + 1).body
    path = folder.add(url, body, max_bytes=most)
    s.report({"url": url, "file": path}, f"stored as {path}")


@contexts.command
def remove(url: str) -> None:
    """Remove the context of a URL; it is then fetched again, if transform.contexts allows that.

    Parameters
    ----------
    url
        URL by which documents refer to the context
    """
    s = session()
    if not _folder(s).remove(url):
        raise NothingFound(f"no context is stored for {url}", hint="to list all: `quadloom contexts list`")


@contexts.command(name="list")
def list_() -> None:
    """List the URLs whose contexts are stored."""
    s = session()
    addresses = _folder(s).addresses()
    if s.json:
        s.emit(addresses)
    else:
        s.write("\n".join(addresses))


def _folder(s: Session) -> ContextFolder:
    folder = s.settings.transform.contexts_folder
    if not folder:
        hint = 'write contexts_folder = "contexts" below [transform]'
        raise UsageError("transform.contexts_folder is not set", hint=hint)
    return ContextFolder(Path(folder))
