"""JSON-LD in HTML: finding the scripts (JSON-LD 1.1, section 7.3), and reading what is almost JSON.

Two attitudes. `scripts_of` and strict JSON are what the specification asks for. `mended` is for the crawl: wrappers
that templates and content systems leave around sound JSON are taken off, one at a time, and each is reported. Nothing
is guessed: where a repair would have to choose a meaning (a missing comma or quote), the block stays broken.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple
from urllib.parse import unquote

from selectolax.lexbor import LexborHTMLParser

from quadloom.errors import SyntaxInvalid
from quadloom.syntaxes.html.alone import source_of
from quadloom.syntaxes.jsonld import json as jsonld_json

# Beginning and end apart, the end on the text turned round: a lazy middle between them takes quadratic time.
_WRAPPERS = (
    (
        "cdata",
        re.compile(r"\s*+(?:/\*|//)?\s*+<!\[CDATA\[\s*+(?:\*/)?"),
        re.compile(r"\s*+(?:/\*)?\s*+>\]\]\s*+(?:\*/|//)?"),
    ),
    ("comment", re.compile(r"\s*+(?://)?\s*+<!--"), re.compile(r"\s*+>--\s*+(?://)?")),
)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)  # as in `jsonld_json`: linear
_CONTROL = re.compile("[\x00-\x1f]")
_ENTITY_QUOTE = re.compile(r"\s*[\[{]\s*(?:\{\s*)?&(?:quot|#34|#x22);", re.IGNORECASE)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Scripts(NamedTuple):
    texts: list[str]
    base: str  # href of the first base element, as written; "" where there is none


class RepairedScript(NamedTuple):
    value: jsonld_json.Json
    repairs: tuple[str, ...]  # of: bom, comment, cdata, entities, control-characters


def is_jsonld_type(value: str) -> bool:
    return value.partition(";")[0].strip().lower() == "application/ld+json"


def scripts_of(body: bytes, fragment: str = "") -> Scripts:
    """The texts of all JSON-LD scripts, or of the one with id `fragment`. Raises where that is no such script."""
    tree = LexborHTMLParser(source_of(body))
    base = tree.css_first("base[href]")
    href = (base.attributes.get("href") or "") if base is not None else ""
    scripts = tree.css("script[type]")
    if fragment:
        wanted = {fragment, unquote(fragment)}
        scripts = [node for node in scripts if node.attributes.get("id") in wanted]
    texts = [node.text() for node in scripts if is_jsonld_type(node.attributes.get("type") or "")]
    if fragment and not texts:
        raise SyntaxInvalid(f"no JSON-LD script has the id {fragment[:80]!r}", code="loading document failed")
    return Scripts(texts, href)


def read_script(text: str) -> jsonld_json.Json:
    """Strict JSON of one script. Raises `SyntaxInvalid`."""
    try:
        return jsonld_json.read(text.encode("utf-8", "surrogatepass"))
    except SyntaxInvalid as error:
        code = "nesting" if error.code == "nesting" else "invalid script element"
        raise SyntaxInvalid(error.message, code=code, line=error.line, column=error.column) from None


def mended(text: str) -> RepairedScript:
    """JSON of a script of the web, with the repairs it took. Raises `SyntaxInvalid` of the first, strict attempt."""
    repairs: list[str] = []
    if text[:1] == "\ufeff" or text.lstrip()[:1] == "\ufeff":
        text = text.replace("\ufeff", " ", 1)
        repairs.append("bom")
    try:
        return RepairedScript(read_script(text), tuple(repairs))
    except SyntaxInvalid as error:
        if error.code == "nesting":
            raise
        first = error
    for name, beginning, ending in _WRAPPERS:
        begun, ended = beginning.match(text), ending.match(text[::-1])
        if begun is not None and ended is not None and begun.end() + ended.end() <= len(text):
            # Blanks instead of the wrapper keep lines and columns as they are in the page.
            text = re.sub(r"[^\n]", " ", begun.group()) + text[begun.end() : len(text) - ended.end()]
            repairs.append(name)
    if _ENTITY_QUOTE.match(text):
        text = html.unescape(text)
        repairs.append("entities")
    escaped = _STRING.sub(_escape_controls, text)
    if escaped != text:
        text = escaped
        repairs.append("control-characters")
    if set(repairs) <= {"bom"}:
        raise first
    return RepairedScript(read_script(text), tuple(repairs))


def _escape_controls(match: re.Match[str]) -> str:
    text = match.group()
    return _CONTROL.sub(lambda found: _SHORT.get(found.group()) or f"\\u{ord(found.group()):04x}", text)
