"""What a native RDF parser must never see, found in linear time before it is called.

Measured on pyoxigraph 0.5: entities of 535 bytes expand to 100 MB; elements within each other cost quadratic time
(40,000 of them 14 s), and so do the attributes of one element (80,000 of them 9 s); triple terms nested 20,000 deep
overflow the stack and end the process. Brackets of Turtle are safe: 200,000 levels parse in 0.3 s, so they are not
limited.
"""

from __future__ import annotations

import re

from quadloom.errors import SyntaxInvalid

MAX_XML_DEPTH = 256
MAX_ATTRIBUTES = 1000
MAX_TRIPLE_TERMS = 128
_SHORT = 64 * MAX_ATTRIBUTES  # bytes: one element fits 14,000 attributes, which take .3 s
_ENTITY_CHARACTERS = 64 * 1024  # one entity, expanded
_EXPANSION_CHARACTERS = 1024 * 1024  # all references together; more is allowed if the document itself is longer

# Each of these reads on to the end if its closing mark is missing, so that no start is tried twice.
_NO_TAGS = re.compile(rb"<!(?:--.*?(?:-->|\Z)|\[CDATA\[.*?(?:\]\]>|\Z))|<\?.*?(?:\?>|\Z)", re.DOTALL)
_TAG = re.compile(rb"<[^<!?>\"'][^<>\"']*(?:\"[^\"<]*\"[^<>\"']*|'[^'<]*'[^<>\"']*)*>")
_DOCTYPE = re.compile(rb"<!DOCTYPE[^<>\[]*(?:\[.*?\]\s*)?>", re.DOTALL)
_ENTITY = re.compile(rb"""<!ENTITY\s+(%\s+)?([^\s"'<>&;%]+)\s+(?:"([^"]*)"|'([^']*)'|(SYSTEM|PUBLIC)\b)""")
_REFERENCE = re.compile(rb"&([^\s&;#<>\"']+);")
_TURTLE_NOISE = re.compile(
    rb'"""[^"\\]*+(?:(?:\\.|"(?!""))[^"\\]*+)*+(?:"""|\Z)|\'\'\'[^\'\\]*+(?:(?:\\.|\'(?!\'\'))[^\'\\]*+)*+(?:\'\'\'|\Z)'
    rb'|"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|\'[^\'\\\n]*+(?:\\.[^\'\\\n]*+)*+\'?|<[^<>\s]*+>|#[^\n]*',
    re.DOTALL,
)
_TRIPLE_MARK = re.compile(rb"<<|>>")


def check_xml(body: bytes) -> None:
    """Raise `SyntaxInvalid` for XML (UTF-8) whose entities, depth or attributes are those of an attack."""
    _check_entities(body)
    if len(body) <= _SHORT and body.count(b"<") <= MAX_XML_DEPTH:
        return
    if b"<!" in body or body.find(b"<?", 1) > 0:
        # Once: what a removed comment joins is no markup to the parser, which reads from left to right as this does.
        body = _NO_TAGS.sub(b"", body)
    depth, longest = _tag_bounds(body)
    if longest > 4 * MAX_ATTRIBUTES:
        _check_attributes(body)
    if depth > MAX_XML_DEPTH:
        _check_tags(body)


def _check_attributes(body: bytes) -> None:
    start = 0
    for piece in body.split(b"<"):
        if len(piece) > 4 * MAX_ATTRIBUTES and start:
            tag = _TAG.match(body, start - 1)
            if (tag.group() if tag else piece).count(b"=") > MAX_ATTRIBUTES:
                raise SyntaxInvalid(f"an element has more than {MAX_ATTRIBUTES} attributes", code="attributes")
        start += len(piece) + 1


def tag_bounds_in_python(xml: bytes) -> tuple[int, int]:
    """The depth of elements by a bound, and the longest distance between two `<`. An element counts as open unless
    nothing but its own `/>` can end it, so the bound is exact but for `>` in attribute values and texts. The document
    is without comments. As `quadloom.documents.native.texts.tag_bounds`."""
    depth = deepest = longest = 0
    for piece in xml.split(b"<")[1:]:
        if len(piece) > longest:
            longest = len(piece)
        first = piece[:1]
        if first == b"/":
            depth -= 1
        elif (b"/>" not in piece or piece.count(b">") > 1) and first not in (b"!", b"?"):
            depth += 1
            if depth > deepest:
                deepest = depth
    return deepest, longest


try:
    from quadloom.documents.native.texts import tag_bounds as _tag_bounds
except ImportError:  # it was not built: there is no compiler
    _tag_bounds = tag_bounds_in_python


def _check_tags(body: bytes) -> None:
    """Depth and attributes, tag by tag; the text is without comments."""
    depth = 0
    for tag in _TAG.finditer(body):
        text = tag.group()
        if len(text) > 4 * MAX_ATTRIBUTES and text.count(b"=") > MAX_ATTRIBUTES:
            raise SyntaxInvalid(f"an element has more than {MAX_ATTRIBUTES} attributes", code="attributes")
        if text[1] == ord("/"):
            depth -= 1
        elif text[-2] != ord("/"):
            depth += 1
            if depth > MAX_XML_DEPTH:
                raise SyntaxInvalid(f"elements nest deeper than {MAX_XML_DEPTH}", code="nesting")


def _check_entities(body: bytes) -> None:
    if b"<!DOCTYPE" not in body:
        return
    subset = _DOCTYPE.match(body, body.index(b"<!DOCTYPE"))
    values: dict[bytes, bytes] = {}
    for parameter, name, double, single, external in _ENTITY.findall(body if subset is None else subset.group()):
        if parameter:
            raise SyntaxInvalid("parameter entities are not allowed", code="entities")
        if not external:
            values.setdefault(name, double or single)
    if not values:
        return
    lengths: dict[bytes, int] = {}
    for name in values:
        _expanded_length(name, values, lengths, 0)
    budget = max(_EXPANSION_CHARACTERS, len(body))
    for match in _REFERENCE.finditer(body, subset.end() if subset is not None else 0):
        budget -= lengths.get(match.group(1), 0)
        if budget < 0:
            raise SyntaxInvalid("entities expand beyond the size of the document", code="entities")


def _expanded_length(name: bytes, values: dict[bytes, bytes], lengths: dict[bytes, int], depth: int) -> int:
    if name in lengths:
        return lengths[name]
    if depth > 16:  # also if an entity contains itself
        raise SyntaxInvalid("entities refer to each other too deeply", code="entities")
    text = values[name]
    total = len(text)
    for inner in _REFERENCE.findall(text):
        if inner in values:
            total += _expanded_length(inner, values, lengths, depth + 1)
        if total > _ENTITY_CHARACTERS:
            raise SyntaxInvalid(f"an entity expands to more than {_ENTITY_CHARACTERS} characters", code="entities")
    lengths[name] = total
    return total


def check_triple_terms(body: bytes) -> None:
    """Raise `SyntaxInvalid` if RDF 1.2 triple terms nest too deeply (Turtle, TriG, N-Triples, N-Quads)."""
    if body.count(b"<<") <= MAX_TRIPLE_TERMS:
        return
    depth = 0
    for mark in _TRIPLE_MARK.findall(_TURTLE_NOISE.sub(b"", body)):
        depth = depth + 1 if mark == b"<<" else max(depth - 1, 0)
        if depth > MAX_TRIPLE_TERMS:
            raise SyntaxInvalid(f"triple terms nest deeper than {MAX_TRIPLE_TERMS}", code="nesting")
