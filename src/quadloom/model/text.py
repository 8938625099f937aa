"""What the text index stores for a page: its texts by field, and their analysis."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import msgspec

from quadloom.model.document import complement, spanned


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
    canonical: str = ""  # the page's own name for itself, if it is another one
    simhash: int = 0  # of the main text: see `quadloom.documents.words.simhash`

    @property
    def main_text(self) -> str:
        """What the page is about. Computed at each access, as are all properties."""
        return spanned(self.body, self.main_spans)

    @property
    def texts(self) -> dict[str, str]:
        """The texts that are searched, by field: `body` is the main text, and `rest` what else the page says."""
        found = {
            "title": self.title,
            "headings": self.headings,
            "description": self.description,
            "literals": self.literals,
            "links": self.links,
            "images": self.images,
            "body": self.main_text,
            "rest": complement(self.body, self.main_spans),
            "address": address_words(self.id),
        }
        return {name: text for name, text in found.items() if text}


def address_words(url: str) -> str:
    """The path of a URL as words: people name pages so, and half remember them."""
    try:
        path = unquote(urlsplit(url).path)
    except ValueError:
        return ""
    return path.replace("/", " ").replace("-", " ").replace("_", " ").strip()
