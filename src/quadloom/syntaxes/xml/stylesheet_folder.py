"""Stylesheets of users: a folder of `.xsl` files, chosen by root element, namespace or kind. No code needed.

`index.toml` or a comment in the file itself says which documents a stylesheet is for (docs/howto/stylesheets.md). The
folder is read once per process; a defect in it is reported on the documents it concerns and never ends a crawl.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path

import msgspec

from quadloom.errors import SyntaxInvalid
from quadloom.model.document import Document
from quadloom.model.finding import Finding
from quadloom.syntaxes.registry import Context
from quadloom.syntaxes.xml.xslt import MAX_STYLESHEET_BYTES, compiled

SYNTAX = "xslt"
_MAX_FILES = 500
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
        name = document.root
        space, _, local = name[1:].rpartition("}") if name[:1] == "{" else ("", "", name)
        if not (self.root or self.namespace or self.kind):
            return False
        return (
            (not self.root or self.root in (name, local))
            and (not self.namespace or self.namespace == space)
            and (not self.kind or self.kind == document.kind)
        )


class StylesheetFolder(msgspec.Struct, frozen=True):
    """What a folder offers, and what is wrong with it."""

    choices: tuple[StylesheetRule, ...]
    findings: tuple[Finding, ...] = ()


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
                stylesheet = compiled(_source(place, choice.file), name=choice.file)
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
            stylesheet.state(context, context.root, syntax=SYNTAX)


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
    return StylesheetFolder(tuple(choices), tuple(findings))


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
