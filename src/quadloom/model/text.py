"""What the text index stores for a page: its texts by field, and their analysis."""

from __future__ import annotations

import msgspec


class AnalysedText(msgspec.Struct, frozen=True):
    """What an index adds for one page. `rewritten`: texts, in UTF-8, of fields that must be replaced before they are
    split into words by `word_analyzer`; see `searched`. `stems` and `endings` are separated by blanks."""

    language: str = ""
    rewritten: dict[str, bytes] = {}
    stems: str = ""
    endings: str = ""

    def searched(self, field: str, text: str) -> str:
        """The text of a field as it is split into words: rewritten, or as it is."""
        new = self.rewritten.get(field)
        return text if new is None else new.decode()


class TextDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What the text index stores for a page."""

    id: str  # graph IRI = page URL
    title: str = ""
    headings: str = ""
    description: str = ""
    links: str = ""  # texts of links in the main part; they are in the body too, as headings are
    images: str = ""  # their alternative texts
    body: str = ""
    main_spans: tuple[int, ...] = ()  # where the main text is in `body`: start, end, start, end …; () = all of it
    literals: str = ""  # words of the data: names, descriptions …
    analysed: AnalysedText | None = None  # None: the index analyses the texts itself
    types: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    site: str = ""
    host: str = ""
    language: str = ""
    kind: str = ""
    fetched_at: float = 0.0
