"""Tables that fit a terminal: numbers and words are not broken, and a long URL is shortened in its middle.

Every column gets the width that it needs. If the sum is too much, the widest columns shrink until the table fits.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.markup import escape
from rich.table import Table

_GAP = 2  # columns between two columns
_MIN_WIDTH = 8  # of a text column
_WHOLE_WORD = 28  # a word up to this length is not shortened if there is any other way


def fitted(
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    numeric: Sequence[bool],
    width: int,
    *,
    title: str = "",
    styles: Sequence[str] = (),
) -> Table:
    """A table without lines. `numeric`: columns that are aligned to the right and never give way. `styles`: of rows."""
    widths = column_widths(columns, cells, numeric, width)
    table = Table(title=title or None, title_justify="left", box=None, pad_edge=False, padding=(0, _GAP, 0, 0))
    table.header_style = "bold"
    for name, size, is_number in zip(columns, widths, numeric, strict=True):
        table.add_column(name, width=size, overflow="fold", no_wrap=is_number, justify="right" if is_number else "left")
    for number, row in enumerate(cells):
        style = styles[number] if number < len(styles) else ""
        table.add_row(
            *(escape(_words(text, size)) for text, size in zip(row, widths, strict=True)), style=style or None
        )
    return table


def column_widths(
    columns: Sequence[str], cells: Sequence[Sequence[str]], numeric: Sequence[bool], width: int
) -> list[int]:
    """The width of each column, so that all of them together fit if that is possible at all."""
    wanted = [max([cell_len(name), *(cell_len(row[place]) for row in cells)]) for place, name in enumerate(columns)]
    room = width - _GAP * (len(columns) - 1)
    for words_stay_whole in (True, False):
        least = [
            size if is_number else min(size, max(_MIN_WIDTH, cell_len(name), _longest(cells, place, words_stay_whole)))
            for place, (name, size, is_number) in enumerate(zip(columns, wanted, numeric, strict=True))
        ]
        if sum(least) <= room:
            break
    widths = list(wanted)
    while sum(widths) > room:
        yielding = [place for place in range(len(widths)) if widths[place] > least[place]]
        if not yielding:
            break
        widths[max(yielding, key=lambda place: widths[place])] -= 1
    return widths


def shortened(text: str, width: int) -> str:
    """`https://www.example.org/events/5-choir-workshop` → `www.example.org/…oir-workshop`."""
    if cell_len(text) <= width:
        return text
    text = text.partition("://")[2] or text
    if cell_len(text) <= width:
        return text
    tail = (width - 1) // 2
    return f"{text[: width - 1 - tail]}…{text[-tail:] if tail else ''}"


def _words(text: str, width: int) -> str:
    """The text with all words that are wider than the column shortened."""
    if cell_len(text) <= width:
        return text
    return " ".join(shortened(word, width) for word in text.split(" "))


def _longest(cells: Sequence[Sequence[str]], place: int, whole: bool) -> int:
    if not whole:
        return 0
    lengths = (cell_len(word) for row in cells for word in row[place].split() if "://" not in word)
    return max((length for length in lengths if length <= _WHOLE_WORD), default=0)
