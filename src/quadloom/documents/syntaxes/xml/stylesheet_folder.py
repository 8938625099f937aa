"""Stylesheets of users: a folder of `.xsl` files, chosen by root element, namespace or kind. No code needed.

`index.toml` or a comment in the file itself says which documents a stylesheet is for (docs/howto/stylesheets.md). HTML
is given to them as XHTML. The folder is read once per process; a defect in it is reported when a crawl begins and on
the documents it concerns, and never ends a crawl.

A stylesheet may import and include other files of the folder and of folders within it, nothing else: references are
paths relative to the file, without `..` out of the folder, and what a symbolic link leads to must be in the folder too.
"""

from __future__ import annotations

import posixpath
import re
import tomllib
from collections.abc import Collection, Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, get_args
from urllib.parse import quote, unquote, urlsplit

import msgspec

from quadloom.documents.syntaxes.html.xhtml import ROOT as XHTML_ROOT
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.xml.xslt import MAX_STYLESHEET_BYTES, Imports, Stylesheet, compiled
from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Document, Kind
from quadloom.model.finding import Finding

SYNTAX = "xslt"
_MAX_FILES = 500
_SCHEME = "stylesheets:"  # of the names of imported files: libxml2 must not take them for relative
_HEADER = re.compile(rb"<!--\s*quadloom:(.*?)-->", re.S)
_PAIR = re.compile(r"""(root|namespace|kind)\s*=\s*(?:"([^"]*)"|'([^']*)'|(\S+))""")


class StylesheetRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A stylesheet and the documents it is for: all of what is given must hold.

    `root` is a local name or `{namespace}local`; `namespace` that of the root element; `kind` a kind such as `rss`.
    """

    file: str
    root: str = ""
    namespace: str = ""
    kind: str = ""

    def suits(self, document: Document) -> bool:
        name = XHTML_ROOT if document.kind == "html" else document.root
        space, _, local = name[1:].rpartition("}") if name[:1] == "{" else ("", "", name)
        if not (self.root or self.namespace or self.kind):
            return False
        return (
            (not self.root or self.root in (name, local))
            and (not self.namespace or self.namespace == space)
            and (not self.kind or self.kind == document.kind)
        )


class StylesheetFolder(msgspec.Struct, frozen=True):
    """What a folder offers, and what is wrong with it. `unused`: stylesheets that no rule names."""

    choices: tuple[StylesheetRule, ...]
    findings: tuple[Finding, ...] = ()
    unused: tuple[str, ...] = ()


class _Index(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    stylesheet: list[StylesheetRule] = []


def read(context: Context) -> None:
    """Apply every stylesheet of the user's folder that suits the document, in the order of the folder."""
    place = context.settings.transform.stylesheets
    if not place:
        return
    folder = stylesheet_folder(place)
    context.findings += folder.findings
    for choice in folder.choices:
        if choice.suits(context.document):
            try:
                stylesheet = _stylesheet(place, choice.file)
            except SyntaxInvalid as error:
                context.find(
                    error.code,
                    error.message,
                    syntax=SYNTAX,
                    severity="error",
                    line=error.line,
                    advice=f"correct {choice.file} in transform.stylesheets",
                )
                continue
            root = context.xhtml if context.document.kind == "html" else context.root
            stylesheet.state(context, root, syntax=SYNTAX)


@lru_cache(maxsize=8)
def stylesheet_folder(place: str) -> StylesheetFolder:
    """The choices of a folder: those of `index.toml` first, then files with a header, by name."""
    path = Path(place)
    findings: list[Finding] = []
    choices: list[StylesheetRule] = []
    try:
        names = sorted(entry.name for entry in path.iterdir() if entry.suffix.lower() in (".xsl", ".xslt"))[:_MAX_FILES]
    except OSError as error:
        return StylesheetFolder(
            (), (_complaint(f"cannot be opened: {error.strerror}", "name a folder in transform.stylesheets"),)
        )
    index = path / "index.toml"
    if index.is_file():
        try:
            listed = msgspec.convert(tomllib.loads(index.read_text(encoding="utf-8")), _Index).stylesheet
            choices += [choice for choice in listed if choice.file in names]
            findings += [
                _complaint(f"index.toml names {choice.file}, which is not there", "give the file's name alone")
                for choice in listed
                if choice.file not in names
            ]
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
            findings.append(_complaint(f"index.toml: {error}", "see docs/howto/stylesheets.md"))
    indexed = {choice.file for choice in choices}
    choices += [found for name in names if name not in indexed and (found := _by_header(place, name))]
    chosen = {choice.file for choice in choices}
    return StylesheetFolder(tuple(choices), tuple(findings), tuple(name for name in names if name not in chosen))


class StylesheetCheck(NamedTuple):
    """`problem` is empty if the stylesheet compiles and there are documents that it could be run on."""

    file: str
    problem: str = ""
    advice: str = ""


def check_folder(place: str, kinds: Collection[str]) -> Iterator[StylesheetCheck]:
    """Every stylesheet of a folder, compiled. `kinds`: the documents that stylesheets are run on."""
    folder = stylesheet_folder(place)
    for finding in folder.findings:
        yield StylesheetCheck(place, finding.message, finding.advice)
    imported = {name for choice in folder.choices for name in _imports_of(place, choice.file)}
    for name in folder.unused:
        if name in imported:
            continue
        yield StylesheetCheck(
            name,
            "never runs: nothing says which documents it is for",
            'add a comment such as <!-- quadloom: root="recipe" -->, or a rule to index.toml',
        )
    for choice in folder.choices:
        yield _checked(place, choice, kinds)


def _checked(place: str, choice: StylesheetRule, kinds: Collection[str]) -> StylesheetCheck:
    if not (choice.root or choice.namespace or choice.kind):
        return StylesheetCheck(
            choice.file, "never runs: its rule names no document", "give root, namespace or kind in its rule"
        )
    if choice.kind and choice.kind not in kinds:
        what = "are not read by stylesheets" if choice.kind in get_args(Kind) else "do not exist"
        return StylesheetCheck(
            choice.file, f"never runs: documents of kind {choice.kind!r} {what}", f"use one of {', '.join(kinds)}"
        )
    try:
        _stylesheet(place, choice.file)
    except SyntaxInvalid as error:
        line = f" (line {error.line})" if error.line else ""
        return StylesheetCheck(choice.file, f"does not compile: {error.message}{line}", "correct the file")
    return StylesheetCheck(choice.file)


def folder_findings(place: str, kinds: Collection[str]) -> tuple[Finding, ...]:
    """What `check_folder` finds wrong, for a crawl to tell at its beginning."""
    if not place:
        return ()
    return tuple(
        _complaint(f"{check.file}: {check.problem}", check.advice)
        for check in check_folder(place, kinds)
        if check.problem
    )


@lru_cache(maxsize=_MAX_FILES)
def _stylesheet(place: str, name: str) -> Stylesheet:
    rules = Imports(_resolve, lambda url: _imported(place, url), most=50, depth=10)
    return compiled(_source(place, name), name=name, imports=rules)


def _imports_of(place: str, name: str) -> set[str]:
    try:
        return {unquote(url.removeprefix(_SCHEME)) for url in _stylesheet(place, name).imports}
    except SyntaxInvalid:
        return set()


def _resolve(base: str, reference: str) -> str:
    """The path of an imported file, relative to the folder."""
    parts = urlsplit(reference)
    path = unquote(parts.path)
    if parts.scheme or parts.netloc or parts.query or parts.fragment or not path or "\\" in path or "\0" in path:
        raise _refused(reference)
    path = posixpath.normpath(posixpath.join(posixpath.dirname(unquote(base.removeprefix(_SCHEME))), path))
    if path.startswith(("/", "../")) or path in (".", ".."):
        raise _refused(reference)
    return f"{_SCHEME}{quote(path)}"


def _imported(place: str, url: str) -> bytes:
    """The bytes of an imported file, if it is really within the folder."""
    name = unquote(url.removeprefix(_SCHEME))
    folder = Path(place).resolve()
    if not (folder / name).resolve().is_relative_to(folder):
        raise _refused(name)
    return _source(place, name)


def _refused(reference: str) -> SyntaxInvalid:
    return SyntaxInvalid(
        f"a stylesheet may not read {reference[:200]!r}: only files of its own folder", code="xslt-forbidden"
    )


def _by_header(place: str, name: str) -> StylesheetRule | None:
    try:
        match = _HEADER.search(_source(place, name)[:4096])
    except SyntaxInvalid:
        return None
    if match is None:
        return None
    values = {key: a or b or c for key, a, b, c in _PAIR.findall(match.group(1).decode("utf-8", "replace"))}
    return StylesheetRule(name, values.get("root", ""), values.get("namespace", ""), values.get("kind", ""))


@lru_cache(maxsize=_MAX_FILES)
def _source(place: str, name: str) -> bytes:
    try:
        with (Path(place) / name).open("rb") as file:
            return file.read(MAX_STYLESHEET_BYTES + 1)
    except OSError as error:
        raise SyntaxInvalid(f"{name}: {error.strerror}", code="xslt-missing") from None


def _complaint(message: str, advice: str) -> Finding:
    return Finding("xslt-folder", f"stylesheets: {message}", "warning", "transform", advice=advice, syntax=SYNTAX)
