"""`quadloom cite`: where a value comes from, for a bibliography or as a folder of evidence."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from quadloom.asking.evidence.cite import FORMATS
from quadloom.asking.evidence.cite import cite as cite_thing
from quadloom.asking.sparql.prefixes import expand
from quadloom.cli.session import session
from quadloom.cli.words import counted


def cite(
    iri: str,
    property: str = "",
    /,
    *,
    format: Literal["text", "json", "bibtex", "csl"] = "text",
    bundle: Path | None = None,
) -> None:
    """Cite a value: the page that states it, when it was read, and the archived record with its digests.

    Parameters
    ----------
    iri
        a thing, or a page
    property
        the property, such as schema:birthDate or birthDate [default: all; for a page, the page itself]
    format
        text, json, bibtex, or csl (the JSON that Zotero and pandoc read)
    bundle
        write a folder with the records, the statements and a manifest, which sha256sum and openssl verify. With
        stores.timestamp_server, a time stamp (RFC 3161) dates it
    """
    s = session()
    with s.read() as warehouse:
        found = cite_thing(warehouse.stores, expand(iri), property, public_url=s.settings.web.public_url)
        if bundle is not None:
            from quadloom.asking.evidence.bundle import stamp_from, write_bundle

            write_bundle(bundle, found, warehouse.stores.archive, stamp_from(s.settings))
            s.say(f"{bundle}: {counted(len(found), 'citation')}; to verify: `sha256sum --check SHA256SUMS` in it")
            return
    s.write(FORMATS["json" if s.json else format](found).rstrip("\n"))
