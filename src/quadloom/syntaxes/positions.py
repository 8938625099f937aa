"""Line and column of things in a page's source.

HTML trees carry no positions, and keeping them would slow every parse for the few pages that have a defect. So places
are found afterwards, by searching the source for what the tree says, in document order.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

# A tag that is not closed ends with the source, so that what looks like a tag within it is not tried again.
_SCRIPT = re.compile(rb"<script(?=[\s/>])((?:[^>\"']++|\"[^\"]*+(?:\"|\Z)|'[^']*+(?:'|\Z))*+)(?:>|\Z)", re.I)
_SCRIPT_END = re.compile(rb"</script", re.I)


class Positions:
    """Places in one source, given as UTF-8. Lines and columns count from 1; columns count characters."""

    __slots__ = ("_lines", "_source")

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._lines: list[int] | None = None

    def at(self, offset: int) -> tuple[int, int]:
        """Line and column of a byte offset."""
        if self._lines is None:
            self._lines = [0, *accumulate(map(len, self._source.splitlines(keepends=True)))]
            if not self._source.endswith((b"\n", b"\r")):
                self._lines.pop()  # the end of the source begins no line
        line = bisect_right(self._lines, offset)
        return line, len(self._source[self._lines[line - 1] : offset].decode("utf-8", "replace")) + 1

    def scripts(self, media_type: str) -> list[int]:
        """Byte offsets of the contents of `<script type=media_type>` blocks, in document order."""
        wanted = media_type.lower().encode()
        offsets = []
        at = 0
        while match := _SCRIPT.search(self._source, at):
            at = match.end()
            if wanted in match.group(1).lower():
                offsets.append(at)
            closed = _SCRIPT_END.search(self._source, at)
            at = closed.end() if closed else len(self._source)
        return offsets

    def inside(self, offset: int, line: int, column: int) -> tuple[int, int]:
        """Place in the page of a place (from 1) within the block that begins at `offset`."""
        first, indent = self.at(offset)
        return (first, indent + column - 1) if line <= 1 else (first + line - 1, column)
