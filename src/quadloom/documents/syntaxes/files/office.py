"""The text of word processors' files: Office Open XML (.docx) and OpenDocument (.odt), which are XML in a ZIP file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

from lxml import etree

from quadloom.documents.syntaxes.files.properties import lines_of, state
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.xml.document_type import parse_xml
from quadloom.errors import SyntaxInvalid

SYNTAX = "office"
_MEMBERS = {"word/document.xml": "docProps/core.xml", "content.xml": "meta.xml"}  # text → what is said about it
_PARAGRAPHS = frozenset(("p", "h"))
_BLANKS = frozenset(("tab", "br", "cr", "s", "line-break"))
_MOST_RATIO = 200  # a member that is unpacked to more than so many times its packed size is an attack


def read(context: Context) -> None:
    """Text, headings, title, author and date. Raises `SyntaxInvalid` if the ZIP file cannot be read; one without a
    document states nothing."""
    try:
        with zipfile.ZipFile(io.BytesIO(context.body)) as archive:
            name = next((name for name in _MEMBERS if name in archive.NameToInfo), "")
            if not name:
                return  # a ZIP file with the name of a document
            content = _member(archive, name, context.settings.limits.body_bytes)
            about = _member(archive, _MEMBERS[name], context.settings.limits.body_bytes)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, ValueError, EOFError) as error:
        raise SyntaxInvalid(f"its ZIP file cannot be read: {error}", code="office-invalid") from None
    paragraphs = list(_paragraphs(parse_xml(content)))
    properties = _properties(about)
    context.facts.headings = "\n".join(text for text, is_heading in paragraphs if is_heading)
    state(
        context,
        title=properties.get("title", ""),
        creator=properties.get("creator", ""),
        created=properties.get("created", "") or properties.get("creation-date", ""),
        language=properties.get("language", ""),
        text="\n".join(text for text, _ in paragraphs),
    )


def _member(archive: zipfile.ZipFile, name: str, most: int) -> bytes:
    """Empty if there is none."""
    info = archive.NameToInfo.get(name)
    if info is None:
        return b""
    with archive.open(info) as stream:
        data = stream.read(min(most, _MOST_RATIO * max(1, info.compress_size)) + 1)
        if len(data) > most or stream.read(1):
            raise ValueError(f"{name} is unpacked to more than a document has")
    return data


def _paragraphs(root: etree._Element) -> Iterator[tuple[str, bool]]:
    """Paragraphs in document order, and whether each is a heading."""
    for paragraph in root.iter("{*}p", "{*}h"):
        text = lines_of("".join(_pieces(paragraph))).replace("\n", " ")
        if text:
            yield text, _is_heading(paragraph)


def _pieces(paragraph: etree._Element) -> Iterator[str]:
    """In OpenDocument text is in the paragraph and its spans, in Office Open XML in elements `t` alone."""
    is_open_document = "opendocument" in (etree.QName(paragraph).namespace or "")
    walk = etree.iterwalk(paragraph, events=("start", "end"))
    for event, element in walk:
        name = etree.QName(element).localname if isinstance(element.tag, str) else ""
        if event == "end":
            if element.tail and is_open_document and element is not paragraph:
                yield element.tail
        elif element is not paragraph and name in _PARAGRAPHS:
            walk.skip_subtree()  # in a frame or footnote: a paragraph of its own
        elif name in _BLANKS:
            yield " "
        elif element.text and (name == "t" or (is_open_document and name)):
            yield element.text


def _is_heading(paragraph: etree._Element) -> bool:
    if etree.QName(paragraph).localname == "h":
        return True
    style = next(paragraph.iter("{*}pStyle"), None)
    return style is not None and any(
        str(value).lower().startswith(("heading", "title")) for value in style.attrib.values()
    )


def _properties(about: bytes) -> dict[str, str]:
    if not about:
        return {}
    try:
        root = parse_xml(about)
    except SyntaxInvalid:
        return {}
    return {etree.QName(one).localname: one.text for one in root.iter("*") if one.text and one.text.strip()}
