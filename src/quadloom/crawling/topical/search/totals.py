"""The number of results that a search states, in any language and markup.

A line counts if its numbers fit what the page shows: a range as long as the list, followed by a larger number ("Results
1 - 10 of about 77"); the length of the list and a larger number ("Showing 10 of 77"); or a number beside a word for
results. A lone number without such a word counts last, and only if it looks like neither a year nor a page number.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import parse_qsl, urlsplit

_GROUP = "[.,'\u2019\u00a0\u202f\u2009 ]"
_NUMBER = re.compile(rf"\d{{1,3}}(?:{_GROUP}\d{{2,3}})*{_GROUP}\d{{3}}(?!\d)|\d+(?:[.,]\d+)?")
_RANGE = re.compile(
    rf"({_NUMBER.pattern})\s*(?:[-–—−~～]|to|through|bis|à|a|al|до|по|hasta|tot|till|til|do|až)\s*({_NUMBER.pattern})",
    re.IGNORECASE,
)
_DURATION = re.compile(
    r"\(?\d+(?:[.,]\d+)?\s*(?:s|ms|sec|secs|seconds?|milliseconds?|sek|sekund\w*|secondes?|segundos?|second[io]|seconden|"
    r"сек\w*|мс|s\.|秒|초|saniye)(?![^\W\d])\)?",
    re.IGNORECASE,
)
_MAGNITUDES = (
    (re.compile(r"(?i)\s*(?:k|thousand|tausend|tsd|mil|mille|mila|duizend|тыс\w*|千|천)(?![^\W\d])\.?"), 10**3),
    (re.compile(r"\s*[万萬만]"), 10**4),
    (re.compile(r"(?i)\s*(?:lakhs?|लाख)(?![^\W\d])"), 10**5),
    (
        re.compile(r"\s*(?:M|(?i:mln|mio|million\w*|millón|millones|milh\w+|milion\w*|miljo\w+|млн|миллион\w*))(?![^\W\d])"),
        10**6,
    ),
    (re.compile(r"(?i)\s*(?:crores?|करोड़)(?![^\W\d])"), 10**7),
    (re.compile(r"\s*[億亿억]"), 10**8),
    (re.compile(r"(?i)\s*(?:bn|billions?|milliarden?|mrd|milliards?|млрд)(?![^\W\d])\.?"), 10**9),
)  # fmt: skip
_RESULTS = re.compile(
    r"(?i)result|hits?\b|match|found|document|article|record|entr(?:y|ies)|items?\b|treffer|ergebnis|gefunden|beiträge|"
    r"résultat|trouvé|résultado|encontrad|risultat|trovat|resulta|gevonden|träff|treff|tulos|osuma|wynik|znalezion|"
    r"výsled|nalezen|találat|rezultat|найден|результат|знайден|резултат|αποτελέσματα|sonuç|bulundu|نتيجة|نتائج|نتیجه|"
    r"תוצאות|परिणाम|ผลลัพธ์|kết quả|hasil|件|结果|結果|条|條|项|筆|篇|결과|건"
)
_PAGES = re.compile(
    r"(?i)\b(?:page|seite|página|pagina|strona|strana|stránka|страница|сторінка|sayfa|sida|side)\b|ページ|第\s*\d+\s*[页頁]"
)
_FORBIDDEN = re.compile(r"%|http|©|[$€£¥₽]|copyright", re.IGNORECASE)
_MOST = 10**11
_LONGEST = 400  # characters of a line that states a total; the patterns take quadratic time in a line of digits


def total_of(lines: Sequence[str], url: str, shown: int) -> int:
    """The stated number of results on a page of `shown` results; -1 if there is none. Numbers of the query in `url` do
    not count."""
    if not shown:
        return 0
    best: tuple[int, int] = (0, -1)
    words = [value for _, value in parse_qsl(urlsplit(url).query) if re.search(r"[^\W\d]", value)]
    for line in lines:
        if len(line) > _LONGEST or _FORBIDDEN.search(line):
            continue
        for value in words:
            line = line.replace(value, " ")
        found = _stated(_DURATION.sub(" ; ", line), shown)
        if found is not None and found[0] > best[0]:
            best = found
    return best[1]


def _stated(line: str, shown: int) -> tuple[int, int] | None:
    """How certain it is (4 = most), and the number."""
    named = bool(_RESULTS.search(line))
    span = _RANGE.search(line)
    if span:
        first, last = _value(span.group(1)), _value(span.group(2))
        length = last - first + 1
        if first >= 1 and (length == shown or (named and shown <= length <= 2 * max(shown, 50))):
            larger = [value for value in _numbers(line[: span.start()] + " ; " + line[span.end() :]) if value >= last]
            if larger:
                return 4, larger[0]
    numbers = _numbers(line)
    if len(numbers) == 2 and numbers[0] == shown <= numbers[1] and (named or shown > 1):
        return 3, numbers[1]
    if len(numbers) != 1 or not shown <= numbers[0] < _MOST or not re.search(r"[^\W\d]", line):
        return None
    if named:
        return 2, numbers[0]
    return None if _PAGES.search(line) or 1900 <= numbers[0] <= 2100 else (1, numbers[0])


def _numbers(line: str) -> list[int]:
    """The whole numbers of a line, with "1.2 million" as 1,200,000; other numbers with decimals are no counts."""
    found = []
    for match in _NUMBER.finditer(line):
        rest = line[match.end() : match.end() + 20]
        scale = next((scale for pattern, scale in _MAGNITUDES if pattern.match(rest)), 1)
        if scale > 1:
            found.append(_scaled(match.group(), scale))
        elif re.fullmatch(r"\d+|\d{1,3}(?:\D\d{2,3})*\D\d{3}", match.group()):
            found.append(_value(match.group()))
    return found


def _scaled(text: str, scale: int) -> int:
    """A comma or point before a magnitude is a decimal sign."""
    whole, _, part = text.replace(",", ".").partition(".")
    if not whole.isdecimal() or (part and not part.isdecimal()) or len(text) > 12:
        return _value(text)
    return round(float(f"{int(whole)}.{part or 0}") * scale)


def _value(text: str) -> int:
    digits = re.sub(r"\D", "", text)
    return int(digits) if digits and len(digits) < 12 else 0
