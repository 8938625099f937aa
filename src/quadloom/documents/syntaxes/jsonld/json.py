"""JSON as JSON-LD needs it: guarded reading with places, scripts in HTML, canonical numbers, RFC 8785 text.

Scripts (JSON-LD 1.1, section 7.3) are read in two ways. `scripts_of` and strict JSON are what the specification asks
for. `repaired_script` is for the crawl: it removes wrappers that templates and content systems leave around sound JSON,
one at a time, and reports each. It never guesses: if a repair would have to choose a meaning (a missing comma or
quote), the block stays broken.
"""

from __future__ import annotations

import html
import json
import math
import re
from typing import NamedTuple, NoReturn, TypeAlias
from urllib.parse import unquote

import msgspec
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html.tree import source_of
from quadloom.errors import SyntaxInvalid

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

JSONLD_TYPE = "application/ld+json"
MAX_DEPTH = 128  # deeper JSON is an attack: expansion recurses, and so do most JSON parsers
_MANY_DIGITS = 30  # an integer that long is over 10^21, so JSON-LD makes it a double anyway

# A string that is not closed ends with the document, so that no quote within it is tried as another beginning.
_STRINGS = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_decode = msgspec.json.Decoder().decode


def read(body: bytes) -> Json:
    """The JSON value of `body` (UTF-8). Raises `SyntaxInvalid` with line and column, also if nesting is too deep."""
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        check_depth(body)
    try:
        return _decode(body)  # type: ignore[no-any-return]  # a decoder without a type gives JSON values
    except (msgspec.DecodeError, UnicodeDecodeError):
        # Slower, but it knows the line and accepts what RFC 8259 allows and msgspec does not: 1e400, lone surrogates.
        return _read_slowly(body)


def check_depth(body: bytes) -> None:
    """Raise if brackets nest deeper than `MAX_DEPTH`, in linear time."""
    depth = 0
    for byte in _STRINGS.sub(b"", body).translate(None, _NOT_BRACKETS):
        if byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise SyntaxInvalid(f"brackets nest deeper than {MAX_DEPTH}", code="nesting")
        else:
            depth -= 1


def _read_slowly(body: bytes) -> Json:
    try:
        value: Json = json.loads(body.decode("utf-8-sig"), parse_constant=_refuse, parse_int=_integer)
    except json.JSONDecodeError as error:
        raise SyntaxInvalid(
            f"not JSON: {error.msg}", code="loading document failed", line=error.lineno, column=error.colno
        ) from None
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise SyntaxInvalid("not UTF-8", code="loading document failed", line=line) from None
    except ValueError as error:
        raise SyntaxInvalid(f"not JSON: {error}", code="loading document failed") from None
    return _without_surrogates(value) if _SURROGATE.search(body) else value


def _without_surrogates(value: Json) -> Json:
    """`"\\ud800"` is JSON, but no text that could be encoded; it becomes U+FFFD, as in literals (`terms`)."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_without_surrogates(member) for member in value]
    if isinstance(value, dict):
        return {str(_without_surrogates(name)): _without_surrogates(member) for name, member in value.items()}
    return value


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON number")


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) < _MANY_DIGITS else float(digits)


def integer_or_double(value: int | float, wants_double: bool) -> tuple[str, bool]:
    """Canonical lexical form of a JSON number and whether it is an xsd:double (toRdf, Data Round Tripping)."""
    if isinstance(value, int):
        if not wants_double and -(10**21) < value < 10**21:
            return str(value), False
        try:
            value = float(value)
        except OverflowError:
            value = math.inf if value > 0 else -math.inf
    elif not wants_double and abs(value) < 1e21 and value == math.floor(value):
        return str(int(value)), False
    return _double(value), True


def _double(value: float) -> str:
    if math.isinf(value):
        return "INF" if value > 0 else "-INF"
    mantissa, _, exponent = f"{value:.15E}".partition("E")
    mantissa = mantissa.rstrip("0")
    return f"{mantissa}0E{int(exponent)}" if mantissa.endswith(".") else f"{mantissa}E{int(exponent)}"


def canonical(value: Json) -> str:
    """RFC 8785 (JCS): members in order of their UTF-16 code units, ECMAScript numbers, the fewest escapes."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return _ecmascript(value)
    if isinstance(value, list):
        return f"[{','.join(map(canonical, value))}]"
    members = sorted(value.items(), key=lambda item: item[0].encode("utf-16-be", "surrogatepass"))
    return f"{{{','.join(f'{canonical(key)}:{canonical(member)}' for key, member in members)}}}"


def _ecmascript(value: int | float) -> str:
    """Number::toString of ECMA-262 for a double. Python's `repr` gives the same shortest digits."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise SyntaxInvalid("a number of a JSON literal exceeds a double", code="invalid value object value")
    if number == 0:
        return "0"
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    count = len(digits)
    if count <= point <= 21:
        return sign + digits + "0" * (point - count)
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if count > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


# Beginning and end apart, the end on the text turned round: a lazy middle between them takes quadratic time.
_WRAPPERS = (
    (
        "cdata",
        re.compile(r"\s*+(?:/\*|//)?\s*+<!\[CDATA\[\s*+(?:\*/)?"),
        re.compile(r"\s*+(?:/\*)?\s*+>\]\]\s*+(?:\*/|//)?"),
    ),
    ("comment", re.compile(r"\s*+(?://)?\s*+<!--"), re.compile(r"\s*+>--\s*+(?://)?")),
)
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)  # as `_STRINGS`: linear
_CONTROL = re.compile("[\x00-\x1f]")
_ENTITY_QUOTE = re.compile(r"\s*[\[{]\s*(?:\{\s*)?&(?:quot|#34|#x22);", re.IGNORECASE)
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Scripts(NamedTuple):
    texts: list[str]
    base: str  # href of the first base element, as written; "" if there is none


class RepairedScript(NamedTuple):
    value: Json
    repairs: tuple[str, ...]  # of: bom, comment, cdata, entities, control-characters


def is_jsonld_type(value: str) -> bool:
    return value.partition(";")[0].strip().lower() == JSONLD_TYPE


def scripts_of(body: bytes, fragment: str = "") -> Scripts:
    """The texts of all JSON-LD scripts, or of the one with id `fragment`. Raises if there is none."""
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


def read_script(text: str) -> Json:
    """Strict JSON of one script. Raises `SyntaxInvalid`."""
    try:
        return read(text.encode("utf-8", "surrogatepass"))
    except SyntaxInvalid as error:
        code = "nesting" if error.code == "nesting" else "invalid script element"
        raise SyntaxInvalid(error.message, code=code, line=error.line, column=error.column) from None


def repaired_script(text: str) -> RepairedScript:
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
        # Not the exception: in a variable of this frame it would be a cycle, which holds all callers with their pages.
        message, code, line, column = error.message, error.code, error.line, error.column
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
        raise SyntaxInvalid(message, code=code, line=line, column=column)
    return RepairedScript(read_script(text), tuple(repairs))


def _escape_controls(match: re.Match[str]) -> str:
    text = match.group()
    return _CONTROL.sub(lambda found: _SHORT.get(found.group()) or f"\\u{ord(found.group()):04x}", text)
