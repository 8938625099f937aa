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
_SHORT = 64 * MAX_ATTRIBUTES  # bytes: read tag by tag in 1 to 5 ms; importing numpy alone takes 150
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
    if len(body) <= _SHORT:
        _check_entities(body)
        if body.count(b"<") > MAX_XML_DEPTH:
            tags = _NO_TAGS.sub(b"", body)
            if not _is_harmless(tags):
                _check_tags(tags)
        return
    marks = _Marks(body)
    if int(marks.special.sum()) > body.startswith(b"<?xml"):
        _check_entities(body)
        # Once: what a removed comment joins is no markup to the parser, which reads from left to right as this does.
        marks = _Marks(_NO_TAGS.sub(b"", body))
    _check_attributes(marks)
    if _depth_at_most(marks) > MAX_XML_DEPTH:
        _check_tags(marks.body)


class _Marks:
    """Every `<` and `>` of a document as arrays: a megabyte of tags in about two milliseconds."""

    def __init__(self, body: bytes) -> None:
        import numpy  # 150 ms that processes without large XML need not spend

        self.body = body
        self.data = numpy.frombuffer(body + b"<", numpy.uint8)
        self.places = numpy.flatnonzero((self.data | 2) == ord(">"))  # the codes of < and > differ in this bit alone
        self.opens = self.data[self.places] == ord("<")
        self.after = self.data[self.places[:-1] + 1]
        self.special = self.opens[:-1] & ((self.after == ord("!")) | (self.after == ord("?")))


def _check_attributes(marks: _Marks) -> None:
    starts = marks.places[marks.opens]
    lengths = starts[1:] - starts[:-1]
    for index in (lengths > 4 * MAX_ATTRIBUTES).nonzero()[0]:
        start, end = int(starts[index]), int(starts[index + 1])
        tag = _TAG.match(marks.body, start)
        if (tag.group() if tag else marks.body[start:end]).count(b"=") > MAX_ATTRIBUTES:
            raise SyntaxInvalid(f"an element has more than {MAX_ATTRIBUTES} attributes", code="attributes")


def _depth_at_most(marks: _Marks) -> int:
    """A bound of the depth that is exact but for `>` in attribute values and texts."""
    opens, step = marks.opens, marks.opens[:-1].astype("i1")
    if not len(step):
        return 0
    step[opens[:-1] & (marks.after == ord("/"))] = -1
    step[marks.special] = 0
    # `<`, one `>`, `<`: that `>` must be the tag's own. Two could be a quoted one, so the element counts as open.
    lone = (step[:-1] == 1) & ~opens[1:-1] & opens[2:]
    step[1:][lone & (marks.data[marks.places[1:-1] - 1] == ord("/"))] = -1
    return int(step.cumsum(dtype="i4").max())


def _is_harmless(body: bytes) -> bool:
    """Whether no tag is long and the depth is within its limit, by a bound: an element counts as open unless nothing
    but its own `/>` can end it."""
    depth = 0
    for piece in body.split(b"<")[1:]:
        if piece[:1] == b"/":
            depth -= 1
        elif b"/>" not in piece or piece.count(b">") > 1:
            depth += 1
            if depth > MAX_XML_DEPTH:
                return False
        if len(piece) > 4 * MAX_ATTRIBUTES:
            return False
    return True


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
