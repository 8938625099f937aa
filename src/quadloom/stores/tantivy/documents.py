"""Pages as documents of tantivy: the fields of an index, and what they hold.

The body itself is not stored: an excerpt of `EXCERPT` characters is, which shows the reason for nearly every hit at a
twentieth of the disk; a match further down shows the beginning of the page. Texts to be shown are stored apart from
those that are searched, which `quadloom.documents.words` may have rewritten.

The version of the analysis is the name of a field, so an index that another version made can be told by its schema. It
stays usable: it is read and written by the rules of version 1, which had three fields of words and no stems.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import msgspec
import tantivy

from quadloom.documents.words.analysis import FIELDS, SCHEMA, STEM_FIELDS, analyse_fields
from quadloom.errors import StoreError
from quadloom.model.text import TextDocument

EXCERPT = 3000
RAW_FIELDS = ("types", "vocabularies", "site", "host", "language", "kind")
_FIRST_FIELDS = ("title", "literals", "body")
_VERSION = f"analysis{SCHEMA}"


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
    builder.add_bytes_field(_VERSION)
    return builder.build()


def is_outdated(path: Path) -> bool:
    """Whether another version of the analysis made the index at `path`."""
    try:
        meta = msgspec.json.decode((path / "meta.json").read_bytes(), type=_Meta)
    except (OSError, msgspec.MsgspecError) as error:
        raise StoreError(
            f"cannot read the text index {path}: {error}", hint="run `quadloom rebuild`: it makes a new one"
        ) from error
    return _VERSION not in {field.name for field in meta.schema}


def word_fields(*, outdated: bool) -> dict[str, float]:
    """Fields of words and their weights."""
    return {name: FIELDS[name] for name in _FIRST_FIELDS} if outdated else dict(FIELDS)


def to_tantivy(document: TextDocument, *, outdated: bool) -> tantivy.Document:
    """`outdated`: for an index of version 1."""
    made = tantivy.Document()
    made.add_text("id", document.id)
    language = document.language
    if outdated:
        for name in _FIRST_FIELDS:
            made.add_text(name, getattr(document, name))
    else:
        texts = {name: text for name in FIELDS if (text := getattr(document, name))}
        analysed = document.analysed or analyse_fields(texts, language)
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
    made.add_bytes("excerpt", (document.body or document.literals)[:EXCERPT].encode("utf-8", "replace"))
    return made


def title_of(document: tantivy.Document) -> str:
    """The title to show."""
    shown = document.get_first("shown_title")
    return bytes(shown).decode() if shown is not None else document.get_first("title") or ""


def excerpt_of(document: tantivy.Document) -> str:
    """The beginning of the text, for snippets."""
    return bytes(document.get_first("excerpt") or b"").decode()
