"""What people see of a page, and whether a value of its data is among it."""

from __future__ import annotations

import re
from functools import cached_property

from quadloom.documents.checks.values import is_date, is_number
from quadloom.documents.syntaxes.registry import Context

_HEAD = 64  # characters that tell one script from another
_MOST_TRIES = 20
_LEAST = 40  # characters; a page with less is made by scripts
_MONTHS = (
    ("jan",), ("feb", "fév"), ("mar", "mär"), ("apr", "avr"), ("may", "mai", "mag"), ("jun", "jui", "giu"),
    ("jul", "jui", "lug"), ("aug", "aoû", "ago"), ("sep", "set"), ("oct", "okt", "ott"), ("nov",),
    ("dec", "dez", "déc", "dic"),
)  # fmt: skip
_BETWEEN_THOUSANDS = "[ .,'’\u00a0\u202f]?"
_GOES_ON = re.compile(r"[.,]?\d")
_WORD = re.compile(r"\w{3,}")


class VisiblePage:
    """The text that a page shows, without its scripts and styles.

    Words are searched in the text without blanks between elements, where `w<b>or</b>d` is one word; numbers in the text
    with them, since two cells of a table are two numbers. Both are read when they are needed. Words are searched as
    bytes in lower case as far as they are ASCII: to fold the case of all characters of a page costs more than to read
    its data. A page with hardly any text is made by scripts, or has nothing but data: it counts as showing everything.
    """

    def __init__(self, context: Context) -> None:
        self._elements = context.all_elements
        self._title = context.facts.title

    def _without_scripts(self, text: str) -> str:
        """Empty if what people see is not known."""
        text = _without(text, self._hidden)
        return f"{self._title} {text}" if len(" ".join(text.split(None, _LEAST)[:_LEAST])) >= _LEAST else ""

    @cached_property
    def _hidden(self) -> list[str]:
        elements = self._elements
        body = elements.named("body")[0]
        hidden = sorted([at for at in elements.named("script") + elements.named("style") if at > body])
        return [elements.text(at) for at in hidden]

    @cached_property
    def _joined(self) -> str:
        """The text without blanks between elements."""
        bodies = self._elements.named("body")
        return self._without_scripts(self._elements.text(bodies[0])) if bodies else ""

    @cached_property
    def _words(self) -> bytes:
        return self._joined.encode("utf-8", "replace").lower()

    @cached_property
    def _separated(self) -> str:
        """The text with blanks between elements."""
        body = self._elements.tree.body
        return self._without_scripts(body.text(separator=" ")) if body is not None else ""

    def shows_text(self, text: str) -> bool:
        """Whether most words of a text are there."""
        elements = self._elements
        if any(text in elements.text(at) for at in elements.named("h1")):
            return True  # as on most pages, which need not be searched as a whole
        if text in self._joined or not self._joined:
            return True
        words = self._words
        return text.encode("utf-8", "replace").lower() in words or _most(_WORD.findall(text), words)

    def shows_number(self, text: str) -> bool:
        """Whether a number is there in any notation: 1299.5 is also `1,299.50`, `1.299,50` and `1 299 50`. What is not
        a number counts as shown: it is another defect."""
        joined = self._joined
        if not joined or not is_number(text) or _stands_alone(text, joined):
            return True
        whole, cents = divmod(round(abs(float(text)) * 100), 100)
        groups = f"{whole:,}".split(",")
        if groups[0] not in joined and text not in joined:  # what no text has, no part of it has
            return False
        page = self._separated
        if text in page:
            return True
        decimals = r"(?:[.,]0+)?" if not cents else rf"\s{{0,3}}[.,'’]?\s{{0,3}}{f'{cents:02}'.rstrip('0')}0*"
        pattern = re.compile(_BETWEEN_THOUSANDS.join(groups) + decimals + r"(?![.,]?\d)")
        at = page.find(groups[0])
        while at >= 0:
            if not _follows_digit(page, at) and pattern.match(page, at):
                return True
            at = page.find(groups[0], at + 1)
        return False

    def shows_day(self, text: str) -> bool:
        """Whether the day of a date is there, with its month or year. Dates without a day count as shown."""
        if not is_date(text) or len(text) < 10 or not text[:4].isdigit():
            return True
        if text[4] != "-" or not 1 <= int(text[5:7]) <= 12 or not text[8:10].isdigit():
            return True
        month, day = int(text[5:7]), int(text[8:10])
        joined = self._joined
        if not joined:
            return True
        if str(day) not in joined:
            return False
        if text[:4] in joined and _has_number(joined, day):
            return True  # as in most dates; to separate the elements costs more than all other comparisons
        page = self._separated
        if not _has_number(page, day):
            return False
        if text[:4] in page or _has_number(page, month):
            return True
        return any(word in page or word.capitalize() in page or word.upper() in page for word in _MONTHS[month - 1])


def _without(text: str, parts: list[str]) -> str:
    """The text without these parts of it, which are given in their order."""
    kept = []
    start = 0
    for part in parts:
        at = _place(part, text, start) if part else -1
        if at >= 0:
            kept.append(text[start:at])
            start = at + len(part)
    return " ".join((*kept, text[start:])) if kept else text


def _place(part: str, text: str, start: int) -> int:
    """As `text.find`, which prepares itself for long parts; their beginning is found in a third of the time."""
    head = part[:_HEAD]
    at = text.find(head, start)
    tries = 0
    while at >= 0 and not text.startswith(part, at):
        tries += 1
        if tries > _MOST_TRIES:  # a page can repeat the beginning as often as it likes
            return text.find(part, at)
        at = text.find(head, at + 1)
    return at


def _stands_alone(number: str, page: str) -> bool:
    """Whether a number is written in just this way, not as part of a longer one."""
    at = page.find(number)
    while at >= 0:
        if not _follows_digit(page, at) and not _GOES_ON.match(page, at + len(number)):
            return True
        at = page.find(number, at + 1)
    return False


def _has_number(page: str, number: int) -> bool:
    digits = str(number)
    at = page.find(digits)
    while at >= 0:
        before = page[max(0, at - 2) : at]
        if not page[at + len(digits) : at + len(digits) + 1].isdigit() and (
            not before[-1:].isdigit() or (before[-1:] == "0" and not before[:-1].isdigit())
        ):
            return True
        at = page.find(digits, at + 1)
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
