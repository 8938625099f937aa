"""What people see of a page, and whether a value of its data is among it."""

from __future__ import annotations

import re
from collections.abc import Callable

from quadloom.checks.values import is_date, is_number
from quadloom.syntaxes.registry import Context

_LEAST = 40  # characters; a page with less is made by scripts
_MONTHS = (
    ("jan",), ("feb", "fév"), ("mar", "mär"), ("apr", "avr"), ("may", "mai", "mag"), ("jun", "jui", "giu"),
    ("jul", "jui", "lug"), ("aug", "aoû", "ago"), ("sep", "set"), ("oct", "okt", "ott"), ("nov",),
    ("dec", "dez", "déc", "dic"),
)  # fmt: skip
_BETWEEN_THOUSANDS = "[ .,'’\u00a0\u202f]?"
_WORD = re.compile(r"\w{3,}")


def visible_page(context: Context) -> VisiblePage | None:
    """None if what people see is not known: a page without text, made by scripts or of nothing but data."""
    body = context.tree.body
    if body is None:
        return None
    hidden = [node.text_lexbor() or "" for node in body.css("script,style")]
    shown = _without(body.text(separator=" "), hidden)
    if len(" ".join(shown.split(None, _LEAST)[:_LEAST])) < _LEAST:
        return None
    return VisiblePage(f"{context.facts.title} {shown}", lambda: _without(body.text(), hidden))


def _without(text: str, parts: list[str]) -> str:
    """The text without these parts of it, which are given in their order."""
    kept = []
    start = 0
    for part in parts:
        at = text.find(part, start) if part else -1
        if at >= 0:
            kept.append(text[start:at])
            start = at + len(part)
    return " ".join((*kept, text[start:])) if kept else text


class VisiblePage:
    """The text that a page shows. It is searched as bytes in lower case as far as they are ASCII: to fold the case of
    all characters of a page costs more than to read its data."""

    def __init__(self, text: str, unbroken: Callable[[], str]) -> None:
        """`unbroken`: the text without blanks between elements, where `w<b>or</b>d` is one word."""
        self._text = text
        self._unbroken = unbroken
        self._lower = text.encode("utf-8", "replace").lower()

    def shows_text(self, text: str) -> bool:
        """Whether most words of a text are there."""
        if text.encode("utf-8", "replace").lower() in self._lower:
            return True
        words = _WORD.findall(text)
        if _most(words, self._lower):
            return True
        return _most(words, self._unbroken().encode("utf-8", "replace").lower())

    def shows_number(self, text: str) -> bool:
        """Whether a number is there in any notation: 1299.5 is also `1,299.50`, `1.299,50` and `1 299 50`. What is not
        a number counts as shown: it is another defect."""
        if text in self._text or not is_number(text):
            return True
        whole, cents = divmod(round(abs(float(text)) * 100), 100)
        groups = f"{whole:,}".split(",")
        decimals = r"(?:[.,]0+)?" if not cents else rf"\s{{0,3}}[.,'’]?\s{{0,3}}{f'{cents:02}'.rstrip('0')}0*"
        pattern = re.compile(_BETWEEN_THOUSANDS.join(groups) + decimals + r"(?![.,]?\d)")
        at = self._text.find(groups[0])
        while at >= 0:
            if not _follows_digit(self._text, at) and pattern.match(self._text, at):
                return True
            at = self._text.find(groups[0], at + 1)
        return False

    def shows_day(self, text: str) -> bool:
        """Whether the day of a date is there, with its month or year. Dates without a day count as shown."""
        if not is_date(text) or len(text) < 10 or not text[:4].isdigit():
            return True
        if text[4] != "-" or not 1 <= int(text[5:7]) <= 12 or not text[8:10].isdigit():
            return True
        month, day = int(text[5:7]), int(text[8:10])
        if not self._has_number(day):
            return False
        named = any(_holds(word, self._lower) for word in _MONTHS[month - 1])
        return named or self._has_number(month) or text[:4].encode() in self._lower

    def _has_number(self, number: int) -> bool:
        digits = str(number).encode()
        at = self._lower.find(digits)
        while at >= 0:
            before = self._lower[max(0, at - 2) : at]
            if not self._lower[at + len(digits) : at + len(digits) + 1].isdigit() and (
                not before[-1:].isdigit() or (before[-1:] == b"0" and not before[:-1].isdigit())
            ):
                return True
            at = self._lower.find(digits, at + 1)
        return False


def _most(words: list[str], page: bytes) -> bool:
    """Whether a page has more than half of the words, or there are none."""
    found = missing = 0
    for word in words:
        if _holds(word, page):
            found += 1
        else:
            missing += 1
        if found * 2 > len(words) or missing * 2 >= len(words):
            break
    return found * 2 > len(words) or not words


def _holds(word: str, page: bytes) -> bool:
    if word.isascii():
        return word.lower().encode() in page
    return any(form.encode("utf-8", "replace").lower() in page for form in (word, word.lower(), word.upper()))


def _follows_digit(text: str, at: int) -> bool:
    """Whether what begins here is the end of a longer number, such as 265 in `1,265`."""
    before = text[max(0, at - 2) : at]
    return before[-1:].isdigit() or (before[:1].isdigit() and before[-1:] in ".,'’\u00a0\u202f")
