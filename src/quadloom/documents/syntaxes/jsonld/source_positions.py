"""Where in the source the statements of JSON-LD are.

Most keys and types that a finding is about occur once, and a search finds them. Otherwise the JSON is
read again with its places, and walked by the fast path, which gives every node object the subject it has in the
statements. Documents that need the complete path have no such walk; there an object is found by what it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from itertools import islice
from json import dumps
from json.decoder import scanstring  # type: ignore[attr-defined]  # not in its stubs
from typing import NamedTuple

from quadloom.documents.syntaxes.jsonld.context import ContextProcessor
from quadloom.documents.syntaxes.jsonld.expand import expand_document
from quadloom.documents.syntaxes.jsonld.extraction import context_loader, page_processor, script_texts
from quadloom.documents.syntaxes.jsonld.fast import FastWalk, NotSimple
from quadloom.documents.syntaxes.jsonld.json import MAX_DEPTH, Json
from quadloom.documents.syntaxes.jsonld.rdf import RdfWriter
from quadloom.documents.syntaxes.jsonld.terms import ActiveContext
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.sink import Sink
from quadloom.documents.syntaxes.source_positions import PlaceKind, SourcePlace
from quadloom.errors import SyntaxInvalid

_MOST_COMPARED = 50  # places of one key
_SCALAR = re.compile(r"[^\s,\]}]+")
_SCRIPT_END = re.compile(rb"</script", re.IGNORECASE)


class _Value(NamedTuple):
    """A JSON value and its place in characters; `parts` are the values of an array."""

    value: Json
    start: int
    end: int
    parts: tuple[_Value, ...] = ()


class _Member(NamedTuple):
    key: str
    start: int
    value: _Value


class _Object(NamedTuple):
    start: int
    members: list[_Member]


class MemberText(NamedTuple):
    """A text in JSON-LD. `type`: the first of the object that has it, as it is written; empty if it has none."""

    type: str
    key: str
    text: str
    place: SourcePlace


class JsonldPlaces:
    """Places of statements. `blanks`: how many blank nodes the page had before its JSON-LD."""

    def __init__(self, context: Context, blanks: int) -> None:
        self._context = context
        self._blanks = blanks
        self._source = context.utf8
        self._blocks = jsonld_blocks(context)
        self._found: dict[re.Pattern[bytes], list[re.Match[bytes]]] = {}

    def texts(self, wanted: Callable[[str, str], bool], least: int, most: int) -> list[MemberText]:
        """Texts of the page's JSON-LD, by key and text, with the type of their object; the first `most`. Only blocks in
        which a search finds such a text are read with their places, and all of them if that gives less than `least`."""
        blocks = [block for block in self._blocks if self._has_text(block, wanted)]
        if len(blocks) < len(self._blocks):
            found = list(islice(_TracedPlaces(self._context, self._blanks, blocks).texts(wanted), most))
            if len(found) >= min(least, most):
                return found
        return list(islice(self._traced.texts(wanted), most))

    def _has_text(self, block: tuple[int, int], wanted: Callable[[str, str], bool]) -> bool:
        return any(
            wanted(str(key, "utf-8", "replace"), str(text, "utf-8", "replace"))
            for key, text in _TEXT.findall(self._source, *block)
        )

    def find(self, subject: str, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None:
        place = self._only_place(predicate, value, kind) if self._is_plain else None
        return place if place is not None else self._traced.find(subject, predicate, value, kind)

    @cached_property
    def _traced(self) -> _TracedPlaces:
        return _TracedPlaces(self._context, self._blanks, self._blocks)

    @cached_property
    def _is_plain(self) -> bool:
        """Whether all contexts are addresses: others can give keys another meaning."""
        found = [_CONTEXT.finditer(self._source, start, end) for start, end in self._blocks]
        return all(self._source.startswith(b'"', one.end()) for matches in found for one in matches)

    def _only_place(self, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None:
        """The place of what the page's JSON-LD has once; None if it has it more than once, or not in so many words."""
        if kind in ("item", "type"):
            found = self._matches(_type_pattern(value)) if value else []
            return SourcePlace(found[0].start(1), found[0].end(1)) if len(found) == 1 else None
        found = self._matches(_key_pattern(predicate))
        if len(found) > _MOST_COMPARED:
            return None
        if len(found) > 1 or kind == "value":
            found = [one for one in found if self._has(one, value)]
        if len(found) != 1:
            return None
        return SourcePlace(*found[0].span(1)) if kind == "property" else SourcePlace(found[0].end(), found[0].end())

    def _matches(self, pattern: re.Pattern[bytes]) -> list[re.Match[bytes]]:
        found = self._found.get(pattern)
        if found is None:
            found = [one for start, end in self._blocks for one in pattern.finditer(self._source, start, end)]
            self._found[pattern] = found
        return found

    def _has(self, key: re.Match[bytes], term: str) -> bool:
        """Whether the value after a key is this text, number or address. Other values are not compared."""
        at = key.end()
        if term[0] == "<":
            return self._source.startswith(f'"{term[1:-1]}"'.encode("utf-8", "replace"), at)
        if term[0] != '"':
            return False
        quoted = term[: term.rindex('"') + 1]
        if self._source.startswith(quoted.encode("utf-8", "replace"), at):
            return "\\" not in quoted
        if not quoted.isascii() and self._source.startswith(dumps(quoted[1:-1]).encode(), at):
            return True
        number = _NUMBER.match(self._source, at)
        return number is not None and term[-1] == ">" and _number(quoted[1:-1]) == float(number[0])


_TEXT = re.compile(rb'"(@?[A-Za-z][\w:-]*)"\s*:\s*\[?\s*"([^"\\]*)"')
_CONTEXT = re.compile(rb'"@context"\s*:\s*')
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


@lru_cache(maxsize=1024)
def _key_pattern(term: str) -> re.Pattern[bytes]:
    return re.compile(rb'("(?:[\w.-]+:|https?:[^"\s]*[/#])?%b")\s*:\s*' % _escaped_name(term))


@lru_cache(maxsize=1024)
def _type_pattern(term: str) -> re.Pattern[bytes]:
    return re.compile(rb'"@type"\s*:\s*("(?:[\w.-]+:|https?:[^"\s]*[/#])?%b")' % _escaped_name(term))


def _escaped_name(term: str) -> bytes:
    return re.escape(_local(term).encode("utf-8", "replace"))


class _TracedPlaces:
    """Places by the JSON's structure."""

    def __init__(self, context: Context, blanks: int, blocks: list[tuple[int, int]]) -> None:
        self._source = context.utf8
        self._context = context
        self._blanks = blanks
        self._all: list[tuple[_Object, int, str]] = []  # object, offset of its text, text
        self._subjects: dict[int, str] = {}  # of JSON objects, by `id`
        self._read: list[tuple[Json, dict[int, _Object]]] = []  # keeps the values alive, so that no `id` is used twice
        for start, end in blocks:
            text = self._source[start:end].decode("utf-8", "replace")
            reader = _Reader(text)
            try:
                value = reader.read()
            except (ValueError, IndexError, RecursionError):
                continue
            self._read.append((value.value, reader.objects))
            self._all += [(found, start, text) for found in reader.objects.values()]

    @cached_property
    def _objects(self) -> dict[str, list[tuple[_Object, int, str]]]:
        """By subject. This walks through all documents of the page."""
        objects: dict[str, list[tuple[_Object, int, str]]] = {}
        sink = Sink()
        sink.blanks = self._blanks
        processor = page_processor(lambda: context_loader(self._context))
        entries = iter(self._all)
        for value, found in self._read:
            self._walk(value, self._context.base, sink, processor)
            for identity, entry in zip(found, entries):  # noqa: B905 - the entries of the next text follow
                subject = self._subjects.get(identity)
                if subject is not None:
                    objects.setdefault(subject, []).append(entry)
        return objects

    def _walk(self, value: Json, base: str, sink: Sink, processor: ContextProcessor) -> None:
        walk = _TracedWalk(processor, sink.blank, base)
        try:
            walk.document(value)
            self._subjects.update(walk.subjects)
        except NotSimple:
            writer = RdfWriter(lambda _s, _p, _o, _graph: None, sink.blank, spaces=base)
            try:
                writer.write(expand_document(processor, ActiveContext.initial(base), value, base))
            except SyntaxInvalid:
                return
        except SyntaxInvalid:
            return

    def find(self, subject: str, predicate: str, value: str, kind: PlaceKind) -> SourcePlace | None:
        entries = self._objects.get(subject) or self._all
        wanted = _local(value) if kind == "type" and value else ""
        for entry in entries:
            found = entry[0]
            if kind in ("item", "type"):
                place = _type_place(found, wanted)
                if place is None and (subject not in self._objects or kind == "type"):
                    continue
                return self._place(entry, place or (found.start, found.start + 1))
            for member in found.members:
                if _local(member.key) == _local(predicate) or member.key == predicate[1:-1]:
                    part = self._part(member.value, value)
                    if part is None:
                        continue
                    if kind == "property":
                        return self._place(entry, (member.start, member.start + len(member.key) + 2))
                    return self._place(entry, (part.start, part.end))
        return None

    def texts(self, wanted: Callable[[str, str], bool]) -> Iterator[MemberText]:
        for entry in self._all:
            kinds = [part.value for one in entry[0].members if one.key == "@type" for part in _parts(one.value)]
            kind = _whole(next((one for one in kinds if isinstance(one, str)), ""))
            for member in entry[0].members:
                for part in _parts(member.value):
                    if isinstance(part.value, str) and wanted(member.key, part.value):
                        place = self._place(entry, (part.start, part.end))
                        yield MemberText(kind, _whole(member.key), _whole(part.value), place)

    def _part(self, stated: _Value, term: str) -> _Value | None:
        """The value, or the part of an array, that gave this term."""
        if stated.parts:
            return next((found for part in stated.parts if (found := self._part(part, term)) is not None), None)
        value = stated.value
        if isinstance(value, dict):
            if "@value" in value:
                return stated if _is_text(value["@value"], term) else None
            return stated if self._subjects.get(id(value), term) == term else None
        return stated if _is_text(value, term) else None

    @staticmethod
    def _place(entry: tuple[_Object, int, str], span: tuple[int, int]) -> SourcePlace:
        _, offset, text = entry
        start = offset + len(text[: span[0]].encode("utf-8", "replace"))
        return SourcePlace(start, start + len(text[span[0] : span[1]].encode("utf-8", "replace")))


def jsonld_blocks(context: Context) -> list[tuple[int, int]]:
    """Byte offsets of the page's JSON-LD: its scripts, or the whole document."""
    if context.document.kind not in ("html", "xhtml"):
        return [(0, len(context.utf8))]
    source = context.utf8
    blocks: list[tuple[int, int]] = []
    at = 0
    for text in [one.encode("utf-8", "replace") for one in script_texts(context)]:
        start = source.find(text, at)
        if start < 0:
            return _searched_blocks(context)  # the parser changed it: \r, NUL, or XHTML with entities
        at = start + len(text)
        blocks.append((start, at))
    return blocks


def _searched_blocks(context: Context) -> list[tuple[int, int]]:
    blocks: list[tuple[int, int]] = []
    for start in context.positions.scripts("application/ld+json"):
        end = _SCRIPT_END.search(context.utf8, start)
        blocks.append((start, end.start() if end else len(context.utf8)))
    return blocks


def _local(name: str) -> str:
    name = name.strip("<>")
    return name[max(name.rfind("/"), name.rfind("#"), name.rfind(":")) + 1 :]


def _is_text(value: Json, term: str) -> bool:
    """Whether a scalar can have given a term: a literal of this text, or an IRI that ends with it."""
    if isinstance(value, bool):
        return term.startswith(f'"{str(value).lower()}"')
    if isinstance(value, (int, float)):
        return term.startswith('"') and "^^" in term
    if not isinstance(value, str):
        return False
    if term.startswith('"'):
        text = term[1 : term.rindex('"')]
        return text == value or "\\" in text
    return value != "" and (term[1:-1].endswith(value.lstrip("./")) or term[1:-1] == value or "%" in term)


def _type_place(found: _Object, wanted: str) -> tuple[int, int] | None:
    for member in found.members:
        if member.key in ("@type", "type", "rdf:type"):
            parts = member.value.parts or (member.value,)
            if not wanted:
                return parts[0].start, parts[0].end
            for part in parts:
                if isinstance(part.value, str) and _local(part.value) == wanted:
                    return part.start, part.end
    return None


class _TracedWalk(FastWalk):
    """The fast path, which remembers the subject of every JSON object."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]  # as `FastWalk`
        self.subjects: dict[int, str] = {}

    def _node(self, element: dict[str, Json], context: ActiveContext, *, begun: bool = False) -> str | None:
        subject = super()._node(element, context, begun=begun)
        if subject is not None:
            self.subjects[id(element)] = subject
        return subject


class _Reader:
    """JSON with places. Lenient: what is around the value and raw line breaks in strings do not matter. Raises
    ValueError or IndexError for what is not JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._depth = 0
        self.objects: dict[int, _Object] = {}

    def read(self) -> _Value:
        brackets = [at for at in (self._text.find("{"), self._text.find("[", self._after_cdata())) if at >= 0]
        if not brackets:
            raise ValueError("no object")
        return self._value(min(brackets))

    def _after_cdata(self) -> int:
        at = self._text.find("<![CDATA[")
        return at + len("<![CDATA[") if at >= 0 else 0

    def _value(self, at: int) -> _Value:
        character = self._text[at]
        if character == '"':
            text, end = scanstring(self._text, at + 1, False)
            return _Value(text, at, end)
        if character in "{[":
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise ValueError("too deep")
            whole = self._object(at) if character == "{" else self._array(at)
            self._depth -= 1
            return whole
        match = _SCALAR.match(self._text, at)
        if match is None:
            raise ValueError("no value")
        word = match.group()
        constants: dict[str, Json] = {"true": True, "false": False, "null": None}
        value: Json = constants[word] if word in constants else float(word) if set(word) & set(".eE") else int(word)
        return _Value(value, at, match.end())

    def _skip(self, at: int) -> int:
        text = self._text
        while text[at].isspace():
            at += 1
        return at

    def _object(self, start: int) -> _Value:
        text = self._text
        value: dict[str, Json] = {}
        members: list[_Member] = []
        at = self._skip(start + 1)
        while text[at] != "}":
            if text[at] != '"':
                raise ValueError("no member")
            begin = at
            key, at = scanstring(text, at + 1, False)
            at = self._skip(at)
            if text[at] != ":":
                raise ValueError("no member")
            one = self._value(self._skip(at + 1))
            value[key] = one.value
            members.append(_Member(key, begin, one))
            at = self._next(one.end, "}")
        self.objects[id(value)] = _Object(start, members)
        return _Value(value, start, at + 1)

    def _array(self, start: int) -> _Value:
        parts: list[_Value] = []
        at = self._skip(start + 1)
        while self._text[at] != "]":
            parts.append(self._value(at))
            at = self._next(parts[-1].end, "]")
        return _Value([part.value for part in parts], start, at + 1, tuple(parts))

    def _next(self, at: int, end: str) -> int:
        at = self._skip(at)
        if self._text[at] == ",":
            return self._skip(at + 1)
        if self._text[at] != end:
            raise ValueError("no end")
        return at


def _parts(value: _Value) -> tuple[_Value, ...]:
    return value.parts or (value,)


def _whole(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can write and nothing else can."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
