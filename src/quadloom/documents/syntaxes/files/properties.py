"""What a document says about itself beside its text, as facts and Dublin Core."""

from __future__ import annotations

import re

from quadloom.documents.syntaxes.html.text import fold
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import iri, literal

_TERMS = "http://purl.org/dc/terms/"
_DATE = "http://www.w3.org/2001/XMLSchema#dateTime"
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")


def state(context: Context, *, title: str, creator: str, created: str, language: str, text: str) -> None:
    """`created`: an XML dateTime; anything else is left out. `text`: one line for a paragraph."""
    facts, limit = context.facts, context.settings.limits.text_chars
    facts.title = facts.title or fold(title[:limit])
    facts.language = facts.language or fold(language[:100])
    facts.text = text[:limit]
    page = iri(context.url)
    if page is None:
        return
    if facts.title:
        context.sink.add(page, f"<{_TERMS}title>", literal(facts.title, facts.language))
    if creator := fold(creator[:limit]):
        context.sink.add(page, f"<{_TERMS}creator>", literal(creator, ""))
    if _INSTANT.fullmatch(created):
        context.sink.add(page, f"<{_TERMS}created>", f'"{created}"^^<{_DATE}>')


def lines_of(text: str) -> str:
    """A text with folded whitespace, without empty lines."""
    return "\n".join(filter(None, map(fold, text.splitlines())))
