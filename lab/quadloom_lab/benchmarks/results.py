"""What is said of the pages in a folder, as digests: `python -m quadloom_lab.benchmarks.results FOLDER… > before.txt`.

A change that should only make pages cheaper must not change what they say. Run this with the version before and the one
after, with the same `PYTHONHASHSEED`, and compare the two files: a line has the page, then one digest for each part of
its result (facts, quads, text, findings, links and the others), so the columns that differ say where to look.
"""

from __future__ import annotations

import mimetypes
import sys
from collections.abc import Iterator
from pathlib import Path

from xxhash import xxh3_64_hexdigest

from quadloom.documents.extract import chosen
from quadloom.documents.pipeline import process_page
from quadloom.documents.syntaxes.plugins import all_syntaxes
from quadloom.model import wire
from quadloom.model.page import Page
from quadloom.model.page_result import PageResult
from quadloom.model.url import fingerprint
from quadloom.model.visit import Visit
from quadloom.settings import Settings

HOST = "pages.example"
FETCHED_AT = 1.8e9  # the same on every run: it is in the result
_VARYING = frozenset(("seconds",))  # the CPU time of phases


def lines(folder: Path, settings: Settings) -> Iterator[str]:
    """One line for each file below the folder, in the order of their names."""
    strategies, syntaxes = chosen(settings.crawl.strategies), all_syntaxes(settings).registry
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            name = path.relative_to(folder).as_posix()
            page = _page(name, path.read_bytes())
            visit = Visit(page.url, page.url, HOST, fingerprint(page.url))
            result = process_page(page, visit, settings, strategies, syntaxes=syntaxes)
            yield " ".join((name, *digests(result)))


def digests(result: PageResult) -> list[str]:
    """One for each part of a result that does not vary from run to run."""
    parts = [getattr(result, name) for name in result.__struct_fields__ if name not in _VARYING]
    return [xxh3_64_hexdigest(wire.encode(part)) for part in parts]


def _page(name: str, body: bytes) -> Page:
    url = f"http://{HOST}/{name}"
    media_type, _ = mimetypes.guess_type(name)
    return Page(url, url, 200, (("content-type", media_type),) if media_type else (), body, FETCHED_AT, 0.1)


def main() -> None:
    settings = Settings()
    for folder in sys.argv[1:]:
        for line in lines(Path(folder), settings):
            sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    main()
