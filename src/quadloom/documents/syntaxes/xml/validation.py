"""Validation of XML against the schemas of a folder (`transform.schemas`): DTD, XSD and RelaxNG.

Which schema a document is validated against: the DTD file that its document type names (`book.dtd`, whatever the
address before it), or else every XSD for the namespace of its root element, or else every RelaxNG that names it. The
document's own internal DTD counts if there is no other. Schemas are the user's files, or what `quadloom schemas add`
has fetched through the guard; nothing is fetched while a page is read, and a schema may only refer to files beside it.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, TypeAlias
from urllib.parse import urlsplit

from lxml import etree

from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.xml.document_type import document_type

SUFFIXES = (".dtd", ".xsd", ".rng")
SYNTAX = "xml"
_XSD = "{http://www.w3.org/2001/XMLSchema}"
_RNG = "{http://relaxng.org/ns/structure/1.0}"
_MOST_FILES = 500
_MOST_FINDINGS = 20  # of one document
_Validator: TypeAlias = "etree.DTD | etree.XMLSchema | etree.RelaxNG"


class SchemaFile(NamedTuple):
    """A schema, and what it is for. `validator` is None if the file cannot be used; `problem` says why."""

    path: Path
    namespaces: frozenset[str]
    roots: frozenset[str]  # names of root elements without namespace; empty = any
    validator: _Validator | None
    problem: str = ""


def validate(context: Context) -> None:
    """Record what the schemas of the folder say against the document."""
    schemas = list(_fitting(context))
    for schema in schemas:
        if schema.validator is None:
            context.find(
                "xml-schema", f"{schema.path.name}: {schema.problem}", syntax=SYNTAX, advice="correct the schema"
            )
            continue
        _report(context, schema.validator, schema.path.name)
    if not schemas and b"<!ELEMENT" in context.utf8:
        own = context.root.getroottree().docinfo.internalDTD
        if own is not None:
            _report(context, own, "its own DTD")


def _report(context: Context, validator: _Validator, name: str) -> None:
    if validator.validate(context.root):
        return
    errors = list(validator.error_log)[:_MOST_FINDINGS]  # type: ignore[arg-type]  # the stubs lack __iter__
    for error in errors:
        context.find(
            "xml-invalid",
            f"{error.message.strip()[:400]} ({name})",
            syntax=SYNTAX,
            severity="error",
            line=max(0, error.line),
            advice="correct the document, or the schema",
        )


def _fitting(context: Context) -> Iterator[SchemaFile]:
    files = schemas_in(context.settings.transform.schemas)
    system = urlsplit(document_type(context.utf8).system).path.rpartition("/")[2]
    named = [one for one in files if one.path.suffix == ".dtd" and one.path.name == system]
    name = context.document.root
    space, _, local = name[1:].rpartition("}") if name[:1] == "{" else ("", "", name)
    for suffix in ("", ".xsd", ".rng"):
        fitting = (
            named
            if not suffix
            else [
                one
                for one in files
                if one.path.suffix == suffix and space in one.namespaces and (not one.roots or local in one.roots)
            ]
        )
        if fitting:
            yield from fitting
            return


@lru_cache(maxsize=4)
def schemas_in(folder: str) -> tuple[SchemaFile, ...]:
    """The schemas of a folder, read once per process."""
    paths = sorted(path for path in Path(folder).glob("*") if path.suffix in SUFFIXES) if folder else []
    return tuple(_read(path) for path in paths[:_MOST_FILES])


def _read(path: Path) -> SchemaFile:
    spaces: frozenset[str] = frozenset()
    roots: frozenset[str] = frozenset()
    try:
        if path.suffix == ".dtd":
            return SchemaFile(path, spaces, roots, etree.DTD(str(path)))
        tree = etree.parse(str(path), etree.XMLParser(no_network=True, resolve_entities=False, load_dtd=False))
        spaces, roots = _subject(tree.getroot())
        return SchemaFile(path, spaces, roots, etree.XMLSchema(tree) if path.suffix == ".xsd" else etree.RelaxNG(tree))
    except (etree.LxmlError, OSError) as error:
        return SchemaFile(path, spaces, roots, None, str(error)[:300])


def _subject(schema: etree._Element) -> tuple[frozenset[str], frozenset[str]]:
    """The namespaces and the root elements that a schema is for."""
    if schema.tag == f"{_XSD}schema":
        names = (one.get("name") for one in schema.iterchildren(f"{_XSD}element"))
        return frozenset((schema.get("targetNamespace") or "",)), frozenset(name for name in names if name)
    spaces = frozenset(ns for one in schema.iter(f"{_RNG}grammar", f"{_RNG}element") if (ns := one.get("ns")))
    return spaces or frozenset(("",)), frozenset(
        name for one in schema.iter(f"{_RNG}element") if (name := one.get("name"))
    )
