"""Archives for notebooks and scripts: the pages of a file, transformed one by one in the calling process.

for page, said in read_archive("crawl.warc.gz"):
    print(page.url, said.title, said.types)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from quadloom.documents.archives.files import warc_files
from quadloom.documents.archives.pages import recorded_pages
from quadloom.documents.transform import transform
from quadloom.model.document import Transformed
from quadloom.model.finding import Finding
from quadloom.model.page import Page
from quadloom.settings import Settings

_DEFAULTS = Settings()


class ArchivedDocument(NamedTuple):
    """A page, and what it says."""

    page: Page
    said: Transformed


def read_archive(
    path: str | Path, settings: Settings = _DEFAULTS, report: Callable[[Finding], None] = lambda _finding: None
) -> Iterator[ArchivedDocument]:
    """Pages of a WARC, ARC or WACZ file, read and transformed as they are asked for. `report` receives bad records.

    A page that crashes or hangs a parser ends the calling process: for strangers' archives there is `quadloom bulk`.
    """
    with warc_files(Path(path)) as files:
        for file in files:
            for recorded in recorded_pages(file, settings.limits, report, Counter()):
                page = recorded.page
                yield ArchivedDocument(
                    page, transform(page.body, url=page.final_url, headers=page.headers, settings=settings, answers=())
                )
