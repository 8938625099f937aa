"""A document as Markdown, for people and for models of language: the main part of pages, all of plain texts."""

from __future__ import annotations

from collections.abc import Iterable

from quadloom.documents.detect import Detected, detect_body
from quadloom.documents.syntaxes.html.markdown import markdown_of, markdown_of_text
from quadloom.documents.syntaxes.html.page import read
from quadloom.documents.syntaxes.html.text import INLINE, main_holders, read_text
from quadloom.documents.syntaxes.html.tree import parse_html
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.unpack import MAGIC, unpack
from quadloom.settings import Settings

_DEFAULTS = Settings()


def markdown(
    body: bytes,
    *,
    url: str,
    content_type: str | None = None,
    headers: Iterable[tuple[str, str]] = (),
    settings: Settings = _DEFAULTS,
    detected: Detected | None = None,
) -> str:
    """The main text of `body`, found at `url`, as Markdown; "" if it is neither a page nor a text. Arguments are those
    of `transform`."""
    headers = tuple(headers)
    if content_type is None:
        content_type = next((value for name, value in headers if name == "content-type"), None)
    document, utf8 = detected or detect_body(body, url=url, content_type=content_type)
    if document.kind == "archive" and body.startswith(MAGIC):
        opened = unpack(body, url=url, content_type=content_type)
        if opened is not None:
            body, document, utf8 = opened.body, opened.document, None
    context = Context(body, document, url=url, settings=settings, headers=headers, utf8=utf8)
    if document.kind == "text":
        return markdown_of_text(context.text)
    if document.kind not in ("html", "xhtml"):
        return ""
    read(context)
    source = context.tree.raw_html  # to read the text may change the tree
    read_text(context)
    return markdown_of(parse_html(source), main_holders(context), context.base, INLINE)
