"""`quadloom schemas`: DTD, XSD and RelaxNG files in a local folder, against which XML is validated."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from cyclopts import App

from quadloom.cli.files import bytes_of
from quadloom.cli.session import Session, session
from quadloom.documents.syntaxes.xml.validation import SUFFIXES, schemas_in
from quadloom.errors import UsageError
from quadloom.fetching.http.documents import DocumentFetcher

schemas = App(name="schemas")
_ACCEPT = "application/xml-dtd, application/xml, text/xml, text/plain;q=0.5, */*;q=0.1"
_MAX_BYTES = 4 * 1024 * 1024


@schemas.command
def add(url: str, file: Path | None = None) -> None:
    """Store a schema under the last part of its URL, as its server sends it now or from a file.

    Parameters
    ----------
    url
        URL of a .dtd, .xsd or .rng
    file
        read the schema from this file instead of fetching it
    """
    s = session()
    name = urlsplit(url).path.rpartition("/")[2]
    if not name.endswith(SUFFIXES):
        raise UsageError(f"{url} does not end in .dtd, .xsd or .rng", hint="name the file of a DTD, XSD or RelaxNG")
    if file is not None:
        body = bytes_of(file, "give the file of a DTD, XSD or RelaxNG")
    else:
        with DocumentFetcher(s.settings) as transport:
            body = transport.fetch_one(url, accept=_ACCEPT, max_bytes=_MAX_BYTES).body
    folder = _folder(s)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(body)
    s.report({"url": url, "file": path}, f"stored as {path}")


@schemas.command(name="list")
def list_() -> None:
    """List the stored schemas with their namespaces and states."""
    s = session()
    rows = [
        (one.path.name, sorted(one.namespaces - {""}), one.problem or "usable") for one in schemas_in(str(_folder(s)))
    ]
    if s.json:
        s.emit([{"file": name, "namespaces": spaces, "state": state} for name, spaces, state in rows])
    else:
        s.table(("file", "namespace", "state"), [(name, " ".join(spaces), state) for name, spaces, state in rows])


def _folder(s: Session) -> Path:
    folder = s.settings.transform.schemas
    if not folder:
        raise UsageError("transform.schemas is not set", hint='write schemas = "schemas" below [transform]')
    return Path(folder)
