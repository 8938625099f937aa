"""The syntax of what people type into a search box, which never fails.

`words "a phrase" prefix* field:word +must -not after:2026-01-31`. Text that does not fit is taken as words, since a
syntax error helps nobody; a missing closing quote is assumed at the end. At most `MAX_CLAUSES` parts count, so no text
becomes a costly query.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta

import msgspec

from quadloom.documents.words.analysis import FIELDS as WORD_FIELDS
from quadloom.documents.words.analysis import query_tokens

MAX_CLAUSES = 64
MAX_TEXT = 2000
MIN_PREFIX = 2  # characters; a shorter prefix would match half of the dictionary
FIELDS = {
    **{name: name for name in WORD_FIELDS if name != "rest"}, "url": "address",
    "heading": "headings", "link": "links", "image": "images", "text": "body",
    "data": "literals", "site": "site", "host": "host", "lang": "language", "language": "language", "kind": "kind",
    "type": "types", "types": "types", "vocabulary": "vocabularies",
}  # fmt: skip
_DATES = {"after": 1, "since": 1, "before": 0, "until": 0}
# "Newest first" as people ask for it. Such a word need not be on the page.
_NEWEST_WORDS = (
    "latest newest recent recently today neueste neuesten neuestes aktuell aktuelle aktuellen uusin uusimmat viimeisin "
    "dernier dernière derniers récents último última últimos recientes novità recenti последние новейшие свежие أحدث "
    "आज नवीनतम ताज़ा 最新 最近 최신 최근 ล่าสุด"
)
_NEWEST = frozenset(_NEWEST_WORDS.split())

_PART = re.compile(r'([-+]?)(?:(\w+):)?(?:"([^"]*)"?|([^\s"]+))')
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


class Clause(msgspec.Struct, frozen=True):
    """`field` empty = any of `WORD_FIELDS`; values of other fields are compared as they are."""

    value: str
    field: str = ""
    prefix: bool = False
    negated: bool = False
    phrase: bool = False
    must: bool = False  # `+word`

    @property
    def about_words(self) -> bool:
        return not self.field or self.field in WORD_FIELDS

    @property
    def required(self) -> bool:
        """Whether a page without it is no answer, however few words are found: `+word`, "phrase", field:word."""
        return self.must or self.phrase or bool(self.field)


class ParsedText(msgspec.Struct, frozen=True):
    """`unfinished`: the last word, if more letters may follow. `since`, `until`: unix times, 0 = none. `newest`: the
    question asks for what is new."""

    clauses: tuple[Clause, ...] = ()
    since: float = 0.0
    until: float = 0.0
    newest: bool = False
    unfinished: str = ""

    @property
    def words(self) -> tuple[Clause, ...]:
        return tuple(clause for clause in self.clauses if clause.about_words)

    @property
    def filters(self) -> tuple[Clause, ...]:
        return tuple(clause for clause in self.clauses if not clause.about_words)


def parse(text: str) -> ParsedText:
    clauses: list[Clause] = []
    since = until = 0.0
    newest = False
    for sign, name, phrase, bare in _PART.findall(_CONTROL.sub(" ", text[:MAX_TEXT])):
        key, value = name.lower(), phrase or bare
        if key in _DATES and (moment := _moment(value, later=not _DATES[key])):
            since, until = (max(since, moment), until) if _DATES[key] else (since, min(until or moment, moment))
            continue
        field = FIELDS.get(key, "")
        if name and not field:
            value = f"{name} {value}"  # an unknown field is a word like any other
        newest = newest or (not name and bare.lower() in _NEWEST)
        tokens = query_tokens(value)
        whole = bool(field) and field not in WORD_FIELDS
        prefix = bare.endswith("*") and bool(tokens) and len(tokens[-1]) >= MIN_PREFIX
        if tokens or (whole and value):
            value = value.rstrip("*") if bare else value
            clauses.append(Clause(value, field, prefix, sign == "-", bool(phrase), sign == "+"))
    if newest and len(clauses) > 1:
        clauses = [clause for clause in clauses if clause.value.lower() not in _NEWEST]
    kept = tuple(clauses[:MAX_CLAUSES])
    last = kept[-1] if kept else None
    open_ended = last is not None and last.about_words and not (last.phrase or last.prefix or last.negated)
    unfinished = last.value if last is not None and open_ended and not text[-1:].isspace() else ""
    return ParsedText(kept, since, until, newest, unfinished)


def _moment(value: str, *, later: bool) -> float:
    """Unix time of `2026`, `2026-01` or `2026-01-31`; `later`: of its end. 0 if it is no date."""
    found = re.fullmatch(r"(\d{4})(?:-(\d\d?))?(?:-(\d\d?))?", value)
    if found is None:
        return 0.0
    year, month, day = (int(part) if part else 0 for part in found.groups())
    try:
        start = datetime(year, month or 1, day or 1, tzinfo=UTC)
        if later:
            days = 1 if day else 31 if month else 366
            start += timedelta(days=days)
            start = start if day else start.replace(day=1, month=start.month if month else 1)
            start -= timedelta(seconds=1)
        return start.timestamp()
    except (ValueError, OverflowError):
        return 0.0


def site_names(value: str) -> tuple[str, ...]:
    """A site as people write it, as the index has it: `https://Example.org/` is example.org, and `www.` may be left
    out or not."""
    name = value.strip().lower().partition("://")[2] or value.strip().lower()
    name = name.partition("/")[0]
    bare = name.removeprefix("www.")
    return tuple(dict.fromkeys((name, bare))) if bare else (name,)


def fold(text: str) -> str:
    """Lower case, without accents: `Café` and `cafe` are one word."""
    if text.isascii():
        return text.lower()
    return "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
