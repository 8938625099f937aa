"""Pages as documents of tantivy: the fields of an index, and what they hold.

The body itself is not stored: an excerpt of `EXCERPT` characters is, which shows the reason for nearly every hit at a
twentieth of the disk; a match further down shows the beginning of the page. Texts to be shown are stored apart from
those that are searched, which `quadloom.documents.words` may have rewritten.

The version of the analysis is the name of a field, so an index that another version made can be told by its schema. It
stays usable: it is read and written by the rules of its version. Version 1 had three fields of words and no stems;
version 2 had one field for all of a page's text, and no copies (`quadloom.stores.tantivy.copies`).
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import tantivy

from quadloom.documents.words.analysis import FIELDS, SCHEMA, STEM_FIELDS, analyse_fields
from quadloom.documents.words.simhash import simhash
from quadloom.errors import StoreError
from quadloom.model.text import TextDocument

EXCERPT = 3000
RAW_FIELDS = ("types", "vocabularies", "site", "host", "language", "kind")
_FIELDS_OF = {
    1: ("title", "literals", "body"),
    2: ("title", "headings", "description", "literals", "links", "images", "body"),
    SCHEMA: tuple(FIELDS),
}
PARTS = 4  # of a fingerprint: if two differ in fewer bits than these, one part is the same
SHOWN = "-"  # instead of a page that this one is a copy of


class _Field(msgspec.Struct):
    name: str


class _Meta(msgspec.Struct):
    """The part of tantivy's meta.json that says what an index has."""

    schema: list[_Field]


def new_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    for field in FIELDS:
        builder.add_text_field(field, tokenizer_name="words")
    for field in STEM_FIELDS:
        builder.add_text_field(field, tokenizer_name="whitespace", index_option="basic")
    for field in RAW_FIELDS:
        builder.add_text_field(field, stored=True, fast=True, tokenizer_name="raw", index_option="basic")
    builder.add_float_field("fetched_at", stored=True, indexed=True, fast=True)
    builder.add_integer_field("year", fast=True)
    # Bytes, since a text field cannot be stored without being indexed.
    builder.add_bytes_field("shown_title", stored=True)
    builder.add_bytes_field("excerpt", stored=True)
    for field in ("copy_of", "canonical", "alike"):
        builder.add_text_field(field, stored=field != "alike", tokenizer_name="raw", index_option="basic")
    builder.add_bytes_field("simhash", stored=True)
    builder.add_bytes_field("page", stored=True)  # all of a page that is a copy, or may become one
    builder.add_bytes_field(f"analysis{SCHEMA}")
    return builder.build()


def version_of(path: Path) -> int:
    """The version of the analysis that made the index at `path`."""
    try:
        meta = msgspec.json.decode((path / "meta.json").read_bytes(), type=_Meta)
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"cannot read the text index {path}: {error}", hint="run `quadloom rebuild`: it makes a new one"
        ) from error
    names = {field.name for field in meta.schema}
    return max((version for version in _FIELDS_OF if f"analysis{version}" in names), default=1)


def word_fields(version: int) -> dict[str, float]:
    """Fields of words and their weights."""
    found = {name: FIELDS[name] for name in _FIELDS_OF[version]}
    return found if version == 1 else found | dict.fromkeys(STEM_FIELDS, 1.0)


def to_tantivy(document: TextDocument, version: int = SCHEMA) -> tantivy.Document:
    """`version`: of the index."""
    made = tantivy.Document()
    made.add_text("id", document.id)
    language = document.language
    if version == 1:
        for name in _FIELDS_OF[1]:
            made.add_text(name, getattr(document, name))
    else:
        texts = document.texts
        analysed = document.analysed
        if version == SCHEMA:
            _add_copies(made, document)
        else:
            texts = {name: text for name in _FIELDS_OF[version] if (text := getattr(document, name))}
            analysed = None
        analysed = analysed or analyse_fields(texts, language)
        language = analysed.language
        for name, text in texts.items():
            made.add_text(name, analysed.searched(name, text))
        if analysed.stems:
            made.add_text("stems", analysed.stems)
        if analysed.endings:
            made.add_text("endings", analysed.endings)
        made.add_bytes("shown_title", document.title.encode("utf-8", "replace"))
    for field in RAW_FIELDS:
        value: str | tuple[str, ...] = getattr(document, field) if field != "language" else language
        for text in (value,) if isinstance(value, str) else value:
            if text:
                made.add_text(field, text)
    made.add_float("fetched_at", document.fetched_at)
    made.add_integer("year", datetime.fromtimestamp(document.fetched_at, UTC).year)
    made.add_bytes("excerpt", (document.main_text or document.literals)[:EXCERPT].encode("utf-8", "replace"))
    return made


def copy_of(document: TextDocument, shown: str) -> tantivy.Document:
    """A page that is not shown, since `shown` is the same: it has no words, so it is neither found nor counted."""
    made = tantivy.Document()
    made.add_text("id", document.id)
    made.add_text("copy_of", shown)
    made.add_bytes("page", _encoded(document))
    return made


def page_of(document: tantivy.Document) -> TextDocument | None:
    """The whole page, if it is stored."""
    stored = document.get_first("page")
    return None if stored is None else msgspec.msgpack.decode(bytes(stored), type=TextDocument)


def parts_of(fingerprint: int) -> list[str]:
    """Parts of a fingerprint, as terms of the field `alike`."""
    return [f"{place}{fingerprint >> 16 * place & 0xFFFF:04x}" for place in range(PARTS)] if fingerprint else []


def fingerprint_of(document: TextDocument) -> int:
    return document.simhash or simhash(document.main_text)


def _add_copies(made: tantivy.Document, document: TextDocument) -> None:
    """What later pages are compared with."""
    made.add_text("copy_of", SHOWN)
    fingerprint = fingerprint_of(document)
    made.add_bytes("simhash", fingerprint.to_bytes(8, "big"))
    for part in parts_of(fingerprint):
        made.add_text("alike", part)
    if document.canonical:  # may be a copy of a page that is read later
        made.add_text("canonical", document.canonical)
        made.add_bytes("page", _encoded(document))


def _encoded(document: TextDocument) -> bytes:
    return msgspec.msgpack.encode(msgspec.structs.replace(document, analysed=None))


def title_of(document: tantivy.Document) -> str:
    """The title to show."""
    shown = document.get_first("shown_title")
    return bytes(shown).decode() if shown is not None else document.get_first("title") or ""


def excerpt_of(document: tantivy.Document) -> str:
    """The beginning of the text, for snippets."""
    return bytes(document.get_first("excerpt") or b"").decode()
