"""The text of PDF files, by PDFium (extra `documents`). Each page begins with a line `[page 7]`, so that a search shows
where its words are."""

from __future__ import annotations

import re
from importlib.util import find_spec

from quadloom.documents.syntaxes.files.properties import lines_of, state
from quadloom.documents.syntaxes.registry import Context
from quadloom.errors import SyntaxInvalid

SYNTAX = "pdf"
_MOST_PAGES = 5_000
_DATE = re.compile(r"D:(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(?:Z|([+-]\d\d)'?(\d\d)'?)?")


def read(context: Context) -> None:
    """Text, title, author and date of a PDF file. Raises `SyntaxInvalid` for one that cannot be opened."""
    if find_spec("pypdfium2") is None:
        advice = 'to make the text of PDF files searchable: pip install "quadloom[documents]"'
        context.find("pdf-not-read", "pypdfium2 is not installed", syntax=SYNTAX, severity="info", advice=advice)
        return
    import pypdfium2 as pdfium  # .1 s that crawls without PDF files do not need

    try:
        document = pdfium.PdfDocument(context.body)
    except pdfium.PdfiumError as error:
        is_locked = "password" in str(error).lower()
        raise SyntaxInvalid(
            "a password is needed to read it" if is_locked else "PDFium cannot open it",
            code="pdf-locked" if is_locked else "pdf-invalid",
        ) from None
    try:
        count = len(document)
        about = document.get_metadata_dict()
        parts: list[str] = []
        room = context.settings.limits.text_chars
        for number in range(min(count, _MOST_PAGES)):
            text = lines_of(_page_text(document, number))
            if text:
                parts.append(f"[page {number + 1}]\n{text}" if count > 1 else text)
                room -= len(parts[-1]) + 1
            if room <= 0:
                break
    finally:
        document.close()
    if count and not parts:
        context.find(
            "pdf-without-text",
            f"none of its {count} pages has text: it is pictures of text, or empty",
            syntax=SYNTAX,
            advice="add a layer of recognized text, so that people can search and hear it",
        )
    state(
        context,
        title=about.get("Title", ""),
        creator=about.get("Author", ""),
        created=_instant(about.get("CreationDate", "")),
        language="",
        text="\n".join(parts),
    )


def _page_text(document: object, number: int) -> str:
    """Empty for a page that PDFium cannot read."""
    import pypdfium2 as pdfium

    try:
        page = document[number]  # type: ignore[index]  # the library has no types
        text = page.get_textpage()
        found: str = text.get_text_bounded()
        text.close()
        page.close()
    except pdfium.PdfiumError:
        return ""
    return found


def _instant(date: str) -> str:
    found = _DATE.match(date)
    if found is None:
        return ""
    year, month, day, hour, minute, second, zone, rest = found.groups()
    place = f"{zone}:{rest}" if zone else "Z" if date.rstrip("'").endswith("Z") else ""
    return f"{year}-{month}-{day}T{hour}:{minute}:{second}{place}"
