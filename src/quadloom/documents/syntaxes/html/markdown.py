"""The main text of a page as Markdown (CommonMark with the tables of GitHub's): headings, lists, tables, code, absolute
links; of images their alternative text.

Nothing in it can be a script or HTML. Outside of code `<`, `>` and `&` are written as references and all signs of
Markdown are escaped; a fence of code is longer than any run of backticks in it; targets of links are http, https or
mailto, with the signs that could end them percent-encoded.

The page is walked once. A frame for each open element collects finished blocks and the line that is being written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import chain, repeat

from selectolax.lexbor import LexborHTMLParser, LexborNode

from quadloom.documents.syntaxes.html.element_nodes import COMMENT, TEXT
from quadloom.model.url import resolve

_BREAK = "\0"  # a line break within a block; no text of a page can hold it
_SPECIAL = re.compile(r"[\\`*_\[\]|~!]")
_REFERENCES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_LINE_START = re.compile(r"(?m)^(\s*)([#+=:-]|\d{1,9}(?=[.)]))")
_UNSAFE_IN_URL = re.compile(r"[\s<>()\\\"'`|\[\]\x00-\x20\x7f]")
_URL = re.compile(r"(?:https?://|mailto:)", re.I)
_TICKS = re.compile(r"`+")
_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight-source)-([A-Za-z0-9+#-]{1,20})(?:\s|$)")
_HEADINGS = {f"h{level}": "#" * level for level in range(1, 7)}
_WRAPPED = {"b": "**", "strong": "**", "i": "*", "em": "*", "cite": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset(("code", "kbd", "samp", "tt"))
_WITHIN_LINE = frozenset((*_WRAPPED, *_CODE, "a"))
_RAW = _CODE | {"pre"}  # frames whose text is not escaped before they end
_CELLS = frozenset(("td", "th"))
_VOID = frozenset(("img", "br", "hr", "wbr", "input", "col", "area", "embed", "source", "track"))
_BLANK = " \t\n\r\f\xa0" + _BREAK


class _Frame:
    """An open element: its finished blocks, and the pieces of the line that is being written."""

    __slots__ = ("attributes", "blocks", "pieces", "rows", "tag")

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.blocks: list[str] = []
        self.pieces: list[str] = []
        self.rows: list[list[_Cell]] = []  # of a table

    def end_line(self) -> None:
        """Make a paragraph of the line that is being written."""
        if self.pieces:
            written = "".join(self.pieces)
            paragraph = _paragraph(_code_span(written) if self.tag in _CODE else written)
            self.pieces = []
            if paragraph:
                self.blocks.append(paragraph)


class _Cell:
    __slots__ = ("blocks", "is_header")

    def __init__(self, blocks: list[str], is_header: bool) -> None:
        self.blocks = blocks
        self.is_header = is_header


def markdown_of(tree: LexborHTMLParser, holders: frozenset[int], base: str, inline: Iterable[str]) -> str:
    """Markdown of the texts whose innermost element that is not `inline` is among `holders`, by its number in document
    order. Links are resolved against `base`."""
    root = tree.root
    if root is None or not holders:
        return ""
    return _Writer(holders, base, frozenset(inline)).write(root)


def markdown_of_text(text: str) -> str:
    """A plain text, paragraph by paragraph."""
    paragraphs = (
        _paragraph(_escaped(part).replace("\n", _BREAK)) for part in re.split(r"\n\s*\n", text.strip("\ufeff"))
    )
    return "".join(f"{paragraph}\n\n" for paragraph in paragraphs if paragraph)[:-1]


class _Writer:
    __slots__ = ("_base", "_frames", "_holder", "_holders", "_inline", "_number")

    def __init__(self, holders: frozenset[int], base: str, inline: frozenset[str]) -> None:
        self._holders = holders
        self._base = base
        self._inline = inline
        self._number = -1  # of the last element that began
        self._holder = [-1]  # the innermost elements that are not inline
        self._frames = [_Frame("", {})]

    def write(self, root: LexborNode) -> str:
        opened: list[tuple[str, bool]] = []  # names, and whether they have a frame
        node: LexborNode | None = root
        while node is not None:
            if node.tag_id == TEXT:
                self._text(node.text_content or "")
            elif node.tag_id > COMMENT:
                opened.append((node.tag or "", self._start(node.tag or "", node)))
                if (below := node.child) is not None:
                    node = below
                    continue
                self._end(*opened.pop())
            while node is not None and opened and node.next is None:
                node = node.parent
                self._end(*opened.pop())
            node = node.next if node is not None and opened else None
        page = self._frames[0]
        page.end_line()
        return "\n\n".join(page.blocks) + "\n" if page.blocks else ""

    def _text(self, text: str) -> None:
        frame = self._frames[-1]
        if self._holder[-1] in self._holders or (frame.tag == "pre" and text.isspace()):
            frame.pieces.append(text if frame.tag in _RAW else _escaped(text))

    def _start(self, tag: str, node: LexborNode) -> bool:
        """Whether the element gets a frame."""
        self._number += 1
        is_block = tag not in self._inline
        frame = self._frames[-1]
        if frame.tag == "pre":
            if is_block:
                self._holder.append(self._number)
                frame.pieces.append("\n" if frame.pieces and frame.pieces[-1][-1:] != "\n" else "")
            elif not _language(frame):
                frame.attributes = node.attributes  # `<pre><code class=language-x>`
            return False
        if is_block:
            if tag == "img" and self._holder[-1] in self._holders and frame.tag not in _RAW:
                frame.pieces.append(f" {_escaped(node.attributes.get('alt') or '')} ")
            elif tag == "br":
                frame.pieces.append(" " if frame.tag in _RAW else _BREAK)
            self._holder.append(self._number)
            if tag in _VOID:
                return False
            self._break_line()
        elif tag not in _WITHIN_LINE or frame.tag in _RAW:
            return False
        self._frames.append(_Frame(tag, node.attributes))
        return True

    def _break_line(self) -> None:
        """A block begins or ends: lines end in the elements around it that are within a line, and in the next."""
        for frame in reversed(self._frames):
            frame.end_line()
            if frame.tag not in _WITHIN_LINE:
                break

    def _end(self, tag: str, has_frame: bool) -> None:
        if tag not in self._inline:
            self._holder.pop()
        if not has_frame:
            return
        frame = self._frames.pop()
        outer = self._frames[-1]
        if tag == "pre":
            content = "".join(frame.pieces)
            if content.strip():
                outer.blocks.append(_fenced(content, _language(frame)))
        elif tag not in _WITHIN_LINE:
            frame.end_line()
            self._add(frame, outer)
        elif frame.blocks:  # it holds blocks: `<a><h2>`
            frame.end_line()
            outer.blocks += frame.blocks
        elif tag in _CODE:
            outer.pieces.append(_code_span("".join(frame.pieces)))
        else:
            text = "".join(frame.pieces)
            body = text.strip(_BLANK)
            start, _, end = text.partition(body) if body else (text, "", "")
            outer.pieces += (start, self._wrapped(frame, body) if body else "", end)

    def _wrapped(self, frame: _Frame, body: str) -> str:
        sign = _WRAPPED.get(frame.tag)
        if sign is not None:
            return body if sign in body or any(one.tag in _WRAPPED for one in self._frames) else f"{sign}{body}{sign}"
        target = self._target(frame.attributes.get("href"))
        if not target or any(one.tag == "a" for one in self._frames):
            return body
        return f"[{body.replace(_BREAK, ' ')}]({target})"

    def _target(self, written: str | None) -> str:
        target = resolve(written.strip(), self._base) if written else None
        if target is None and written and written.strip().lower().startswith("mailto:"):
            target = written.strip()
        if not target or not _URL.match(target):
            return ""
        return _UNSAFE_IN_URL.sub(lambda sign: "".join(f"%{byte:02X}" for byte in sign.group().encode()), target)

    def _add(self, frame: _Frame, outer: _Frame) -> None:
        """Add what a block element holds to what is around it."""
        tag, blocks = frame.tag, frame.blocks
        if tag in _CELLS:
            rows = _table_of(self._frames).rows
            if not rows:
                rows.append([])
            rows[-1].append(_Cell(blocks, tag == "th"))
        elif tag == "table":
            outer.blocks += [*blocks, *_table(frame.rows)]
        elif tag == "tr":
            outer.blocks += blocks
            _table_of(self._frames).rows.append([])
        elif not blocks:
            return
        elif tag in _HEADINGS:
            outer.blocks.append(f"{_HEADINGS[tag]} {_one_line(blocks)}")
        elif tag == "blockquote":
            outer.blocks.append(_prefixed("\n\n".join(blocks), "> ", "> "))
        elif tag in ("ul", "ol", "menu", "dir"):
            outer.blocks.append(_list(blocks, tag == "ol"))
        elif tag == "li":
            outer.blocks.append("\n\n".join(blocks))
        elif tag == "dt":
            line = _one_line(blocks)
            outer.blocks.append(line if "**" in line else f"**{line}**")
        else:
            outer.blocks += blocks


def _table_of(frames: list[_Frame]) -> _Frame:
    """The innermost table that is open; the page itself for rows outside of one."""
    return next((frame for frame in reversed(frames) if frame.tag == "table"), frames[0])


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text.replace(_BREAK, "").translate(_REFERENCES))


def _paragraph(text: str) -> str:
    lines = [" ".join(line.split()) for line in text.split(_BREAK)]
    while lines and not lines[-1]:
        lines.pop()
    while lines and not lines[0]:
        lines.pop(0)
    return _LINE_START.sub(_with_sign, "\\\n".join(line for line in lines if line))


def _with_sign(found: re.Match[str]) -> str:
    start, sign = found.groups()
    return f"{start}{sign}\\" if sign[0].isdigit() else f"{start}\\{sign}"


def _one_line(blocks: list[str]) -> str:
    return " ".join(" ".join(block.replace("\\\n", " ").split()) for block in blocks)


def _code_span(text: str) -> str:
    content = " ".join(text.replace(_BREAK, " ").split())
    if not content:
        return " " if text else ""
    ticks = "`" * (1 + max((len(run) for run in _TICKS.findall(content)), default=0))
    pad = " " if content[0] == "`" or content[-1] == "`" else ""
    lead, trail = " " * text[:1].isspace(), " " * text[-1:].isspace()
    return f"{lead}{ticks}{pad}{content}{pad}{ticks}{trail}"


def _fenced(text: str, language: str) -> str:
    text = text.replace(_BREAK, "\n").replace("\r\n", "\n").replace("\r", "\n").strip("\n")
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def _language(frame: _Frame) -> str:
    found = _LANGUAGE.search(frame.attributes.get("class") or "")
    return found.group(1) if found else ""


def _prefixed(text: str, first: str, others: str) -> str:
    lines = zip(chain((first,), repeat(others)), text.split("\n"), strict=False)
    return "\n".join(prefix + line if line else prefix.rstrip() for prefix, line in lines)


def _list(items: list[str], numbered: bool) -> str:
    marks = [f"{number}. " if numbered else "- " for number in range(1, len(items) + 1)]
    written = [_prefixed(item, mark, " " * len(mark)) for mark, item in zip(marks, items, strict=True)]
    return ("\n\n" if any("\n\n" in item for item in items) else "\n").join(written)


def _table(rows: list[list[_Cell]]) -> list[str]:
    """A table of data as such; of one that lays out the page what its cells hold."""
    rows = [row for row in rows if row]
    width = max((len(row) for row in rows), default=0)
    if width < 2 or any(_is_layout(cell) for row in rows for cell in row):
        return [block for row in rows for cell in row for block in cell.blocks]
    texts = [[_one_line(cell.blocks) for cell in row] + [""] * (width - len(row)) for row in rows]
    if any(cell.is_header for cell in rows[0]):
        head, body = texts[0], texts[1:]
    else:
        head, body = [""] * width, texts
    if not any(any(row) for row in texts):
        return []
    lines = [head, ["---"] * width, *body]
    return ["\n".join("| " + " | ".join(_unpiped(cell) for cell in line) + " |" for line in lines)]


def _is_layout(cell: _Cell) -> bool:
    """Whether a cell holds more than a line can: code, lists, headings, tables, many paragraphs."""
    return len(cell.blocks) > 6 or any(block.startswith(("```", "#", "- ", "1. ", "| ", "> ")) for block in cell.blocks)


def _unpiped(cell: str) -> str:
    """A `|` in code is not escaped yet, and would end the cell."""
    return re.sub(r"(?<!\\)\|", r"\\|", cell)
