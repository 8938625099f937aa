"""What a feed says, whatever its format: dates, one record for a channel or an entry, and their statements.

The vocabulary is RSS 1.0 with its modules, because that is the feed format which is RDF already: a query then finds the
entries of RSS 0.9x, 1.0, 2.0, Atom and JSON Feed alike. Two deviations are on purpose. A channel is linked to its
entries by `dcterms:hasPart`, not by the `rdf:Seq` of RSS 1.0, whose numbers shift with each new entry so that every
statement of the list would change. And `rss:link` is an IRI, not a text. docs/reference/vocabulary.md has the table.

Dates (RFC 822 and ISO 8601 as they are written on the web) become `xsd:dateTime` in UTC, so that dates of different
feeds compare as text. What cannot be read without guessing stays text.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz
from functools import lru_cache
from html import unescape
from typing import NamedTuple

from quadloom.documents.syntaxes.html.text import fold
from quadloom.documents.syntaxes.iri import ReferenceResolver
from quadloom.documents.syntaxes.registry import Context
from quadloom.documents.syntaxes.terms import TYPE, XSD, iri, literal
from quadloom.model.link import Link, LinkKind

_EPOCH = datetime(1970, 1, 1)
_MAX_LENGTH = 64  # longer texts are no dates
_MONTHS = {
    name: number
    for number, name in enumerate(
        ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"), start=1
    )
}
_RFC822 = re.compile(
    r"(?:[A-Za-z]{3,9}\.?,?\s+)?(\d{1,2})[\s-]+([A-Za-z]{3})[A-Za-z]*\.?[\s-]+(\d{4})\s+(\d{1,2}):(\d{2})(?::(\d{2}))?"
    r"(?:\s*(GMT|UTC|UT|Z|[+-]\d{2}:?\d{2}))?\Z"
)
_ISO = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[Tt\s]+(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*([Zz]|[+-]\d{2}:?\d{2})?)?)?)?\Z"
)


class ParsedDate(NamedTuple):
    """`text` is an xsd:dateTime in UTC; `unix` the same as a number; `exact` is False if the zone was missing."""

    text: str
    unix: float
    exact: bool = True


@lru_cache(maxsize=1024)
def parse_date(text: str) -> ParsedDate | None:
    """The time that a date means, or None if it cannot be read without guessing. A date without a zone is UTC."""
    text = text.strip()
    if not text or len(text) > _MAX_LENGTH:
        return None
    found = _ISO.match(text)
    if found:
        year, month, day, hour, minute, second, zone = found.groups()
        return _date_of(int(year), int(month or 1), int(day or 1), hour, minute, second, zone)
    found = _RFC822.match(text)
    if found:
        day, name, year, hour, minute, second, zone = found.groups()
        number = _MONTHS.get(name.lower())
        return _date_of(int(year), number, int(day), hour, minute, second, zone) if number else None
    return _lenient(text)


def _date_of(
    year: int, month: int, day: int, hour: str | None, minute: str | None, second: str | None, zone: str | None
) -> ParsedDate | None:
    try:
        at = datetime(year, month, day, int(hour or 0) % 24, int(minute or 0), min(int(second or 0), 59))
        if zone and zone[0] in "+-":
            offset = timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
            at = at - offset if zone[0] == "+" else at + offset
        if int(hour or 0) == 24:  # ISO 8601's end of day
            at += timedelta(days=1)
    except (ValueError, OverflowError):
        return None
    return ParsedDate(f"{at.isoformat()}Z", (at - _EPOCH).total_seconds(), zone is not None)


def _lenient(text: str) -> ParsedDate | None:
    """Everything else that mail programs read: named zones of North America, two-digit years, asctime."""
    parsed = parsedate_tz(text)
    if parsed is None:
        return None
    try:
        at = datetime(*parsed[:6], tzinfo=UTC) - timedelta(seconds=parsed[9] or 0)
    except (ValueError, OverflowError):
        return None
    return ParsedDate(at.strftime("%Y-%m-%dT%H:%M:%SZ"), at.timestamp(), parsed[9] is not None) if at.year > 1 else None


RSS = "http://purl.org/rss/1.0/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
ENCLOSURE = "http://purl.oclc.org/net/rss_2.0/enc#"
DEPICTION = "<http://xmlns.com/foaf/0.1/depiction>"

_CHANNEL = f"<{RSS}channel>"
_ITEM = f"<{RSS}item>"
_TITLE = f"<{RSS}title>"
_LINK = f"<{RSS}link>"
_DESCRIPTION = f"<{RSS}description>"
_ENCODED = f"<{CONTENT}encoded>"
_CREATOR = f"<{DC}creator>"
_SUBJECT = f"<{DC}subject>"
_DATE = f"<{DC}date>"
_LANGUAGE = f"<{DC}language>"
_RIGHTS = f"<{DC}rights>"
_IDENTIFIER = f"<{DC}identifier>"
_MODIFIED = f"<{DCTERMS}modified>"
_PART = f"<{DCTERMS}hasPart>"
_ENCLOSED = f"<{ENCLOSURE}enclosure>"
_ENC_TYPE = f"<{ENCLOSURE}type>"
_ENC_LENGTH = f"<{ENCLOSURE}length>"
_DATE_TIME = f"{XSD}dateTime"
_MAX_ANCHOR = 200
# What has no end is taken up to the end of the text, and a tag ends before the next `<`: so no start is tried twice.
_TAGS = re.compile(r"<!--.*?(?:-->|\Z)|<(script|style)\b.*?(?:</\1\s*>|\Z)|</?[A-Za-z][^<>]*>", re.S | re.I)
_MAX_DATE_FINDINGS = 5  # of one feed; its generator makes the same mistake in every entry


class Enclosure(NamedTuple):
    """A file that belongs to an entry. `length` is in bytes, as written."""

    reference: str
    media_type: str = ""
    length: str = ""


class FeedLink(NamedTuple):
    """A link of an entry other than the one to its page."""

    reference: str
    kind: LinkKind
    rel: str = ""
    anchor: str = ""


class FeedEntry:
    """One entry, or with `is_channel` the feed itself. Texts as written; references not yet resolved.

    The defaults are in the class, and several values are tuples: most entries have few of them, and setting all for
    each entry would cost as much as reading its texts.
    """

    about = ""  # the name that the author gave it as an IRI
    id = ""
    link = ""
    title = ""
    summary = ""
    content = ""
    published = ""
    updated = ""
    rights = ""
    authors: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    images: tuple[str, ...] = ()
    enclosures: tuple[Enclosure, ...] = ()
    links: tuple[FeedLink, ...] = ()
    extras: tuple[tuple[str, str], ...] = ()  # (predicate IRI, text): modules of RSS

    def __init__(self, language: str = "", *, is_channel: bool = False) -> None:
        self.language = language
        self.is_channel = is_channel


class FeedWriter:
    """Writes entries to a context: statements, links, dates for scheduling, words for the index."""

    __slots__ = ("_add", "_context", "_dates", "_facts", "_links", "_resolver", "_syntax", "_texts", "_url", "feed")

    def __init__(self, context: Context, syntax: str) -> None:
        self._context = context
        self._add = context.sink.add
        self._links = context.links
        self._facts = context.facts
        self._url = context.url
        self._syntax = syntax
        self._resolver = ReferenceResolver(context.base)
        self._dates = 0
        self._texts: list[str] = []
        self.feed = iri(context.url) or context.sink.blank()

    def channel(self, entry: FeedEntry) -> None:
        """State the feed itself. Called first, so that its language and title are the page's."""
        facts = self._facts
        facts.title = facts.title or plain(entry.title)
        facts.description = facts.description or plain(entry.summary)
        facts.language = facts.language or entry.language
        self._add(self.feed, TYPE, _CHANNEL)
        if entry.language:
            self._add(self.feed, _LANGUAGE, literal(entry.language))
        self._state(self.feed, entry, self._resolver(entry.link) if entry.link else None, "typed", "alternate")

    def entry(self, entry: FeedEntry) -> None:
        """State an entry; its link leads to a page, so the crawl may follow it."""
        target = self._resolver(entry.link) if entry.link else None
        subject = self._subject(entry, target)
        add = self._add
        add(self.feed, _PART, subject)
        add(subject, TYPE, _ITEM)
        self._state(subject, entry, target, "item", "")

    def close(self) -> None:
        """Write the words of all entries to the facts."""
        facts = self._facts
        if not facts.text:
            facts.text = "\n".join(self._texts)[: self._context.settings.limits.text_chars]

    def _subject(self, entry: FeedEntry, target: str | None) -> str:
        name = entry.about and iri(entry.about)
        if name:
            return name
        if target:
            return f"<{target}>"
        return (entry.id and iri(entry.id)) or self._context.sink.blank()

    def _state(self, subject: str, entry: FeedEntry, target: str | None, kind: LinkKind, rel: str) -> None:
        add = self._add
        tag = _language_tag(entry.language)
        title, summary = plain(entry.title), plain(entry.summary)
        if title:
            add(subject, _TITLE, literal(title) + tag)
            self._texts.append(title)
        if target:
            add(subject, _LINK, f"<{target}>")
            self._links.append(Link(target, self._url, kind, title[:_MAX_ANCHOR], rel))
        if summary:
            add(subject, _DESCRIPTION, literal(summary) + tag)
            self._texts.append(summary)
        if entry.content and entry.content != entry.summary:
            add(subject, _ENCODED, literal(entry.content) + tag)
        if entry.id and subject != f"<{entry.id}>":
            add(subject, _IDENTIFIER, literal(entry.id))
        if entry.rights:
            add(subject, _RIGHTS, literal(plain(entry.rights)) + tag)
        for author in entry.authors:
            add(subject, _CREATOR, literal(plain(author)))
        for word in entry.subjects:
            add(subject, _SUBJECT, literal(word) + tag)
        for predicate, text in entry.extras:
            add(subject, predicate, literal(text))
        if entry.published or entry.updated:
            self._state_dates(subject, entry, target)
        if entry.enclosures or entry.images:
            self._state_media(subject, entry)
        for reference, other_kind, words, anchor in entry.links:
            other = self._resolver(reference)
            if other:
                self._links.append(Link(other, self._url, other_kind, anchor[:_MAX_ANCHOR], words))

    def _state_dates(self, subject: str, entry: FeedEntry, target: str | None) -> None:
        latest = 0.0
        for predicate, text in ((_DATE, entry.published), (_MODIFIED, entry.updated)):
            if not text:
                continue
            at = parse_date(text)
            if at is None:
                self._add(subject, predicate, literal(text))
                self._report_date(text)
            else:
                self._add(subject, predicate, literal(at.text, datatype=_DATE_TIME))
                latest = max(latest, at.unix)
        if latest and target and not entry.is_channel:
            self._facts.lastmods.append((target, latest))

    def _report_date(self, text: str) -> None:
        self._dates += 1
        if self._dates <= _MAX_DATE_FINDINGS:
            self._context.find(
                "feed-date",
                f"date {text[:60]!r} cannot be read: kept as text",
                syntax=self._syntax,
                advice="write RFC 822 dates in RSS, RFC 3339 dates in Atom and JSON Feed",
            )

    def _state_media(self, subject: str, entry: FeedEntry) -> None:
        add = self._add
        links, images, url = self._links, self._facts.images, self._url
        for reference, media_type, length in entry.enclosures:
            target = self._resolver(reference)
            if target is None:
                continue
            add(subject, _ENCLOSED, f"<{target}>")
            if media_type:
                add(f"<{target}>", _ENC_TYPE, literal(media_type))
            if length.isdecimal():
                add(f"<{target}>", _ENC_LENGTH, literal(length, datatype=f"{XSD}integer"))
            links.append(Link(target, url, "image" if media_type.startswith("image/") else "embed", "", "enclosure"))
            if media_type.startswith("image/"):
                images[target] = None
        for reference in entry.images:
            target = self._resolver(reference)
            if target:
                add(subject, DEPICTION, f"<{target}>")
                links.append(Link(target, url, "image"))
                images[target] = None


@lru_cache(maxsize=256)
def _language_tag(language: str) -> str:
    """What follows a literal of that language; nothing if the tag is not well-formed."""
    return literal("", language)[2:]


def plain(text: str) -> str:
    """The words of a text that may hold HTML, as descriptions of feeds do without saying so.

    By one scan, not by a parser: a parser's worst cases are bounded for one page, and a feed has thousands of texts.
    """
    if "<" in text:
        text = _TAGS.sub(" ", text)
    if "&" in text:
        text = unescape(text)
    return fold(text)
