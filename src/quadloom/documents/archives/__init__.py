"""Archives of the web.

In: WARC, ARC and WACZ files, and bodies as servers encode them. Out: pages and decoded bodies; `read_archive` gives
what the pages say, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quadloom.documents.archives.reader import read_archive

__all__ = ["read_archive"]


def __getattr__(name: str) -> object:
    """Imported when it is asked for: the fetch process decodes bodies, and imports no parser."""
    if name == "read_archive":
        from quadloom.documents.archives.reader import read_archive

        return read_archive
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
