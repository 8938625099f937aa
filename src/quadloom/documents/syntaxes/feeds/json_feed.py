"""JSON Feed 1.0 and 1.1, to the same statements as RSS and Atom. Tolerant: a value of a wrong type is left out."""

from __future__ import annotations

import msgspec

from quadloom.documents.syntaxes.feeds.writing import Enclosure, FeedEntry, FeedLink, FeedWriter
from quadloom.documents.syntaxes.registry import Context
from quadloom.errors import SyntaxInvalid

_SYNTAX = "jsonfeed"
_MAX_VALUES = 256


def extract(body: bytes, *, url: str) -> bytes:
    """N-Triples of one feed."""
    context = Context.standalone(body, "jsonfeed", url=url)
    read(context)
    return context.sink.nquads()


def read(context: Context) -> None:
    """Everything a JSON Feed says."""
    try:
        feed = msgspec.json.decode(context.utf8)
    except (msgspec.DecodeError, RecursionError) as error:
        raise SyntaxInvalid(f"not JSON: {error}", code="json") from None
    if not isinstance(feed, dict):
        raise SyntaxInvalid("a JSON Feed is an object", code="jsonfeed")
    items = feed.get("items")
    if not isinstance(items, list):
        context.find("jsonfeed-items", "the feed has no list of items", syntax=_SYNTAX, advice="add an items array")
        items = []
    writer = FeedWriter(context, _SYNTAX)
    language = _text(feed, "language")
    writer.channel(_channel(feed, language))
    for item in items:
        if isinstance(item, dict):
            writer.entry(_entry(item, language))
    writer.close()


def _channel(feed: dict[str, object], language: str) -> FeedEntry:
    channel = FeedEntry(language, is_channel=True)
    channel.title = _text(feed, "title")
    channel.summary = _text(feed, "description")
    channel.link = _text(feed, "home_page_url")
    channel.authors = _authors(feed)
    channel.images = tuple(filter(None, (_text(feed, "icon"), _text(feed, "favicon"))))
    links: list[FeedLink] = []
    following = _text(feed, "next_url")
    if following:
        links.append(FeedLink(following, "next", "next"))
    links += [FeedLink(url, "typed", "hub") for hub in _records(feed, "hubs") if (url := _text(hub, "url"))]
    channel.links = tuple(links)
    return channel


def _entry(item: dict[str, object], language: str) -> FeedEntry:
    entry = FeedEntry(_text(item, "language") or language)
    number = item.get("id")
    entry.id = str(number) if isinstance(number, (int, float)) else _text(item, "id")
    entry.link = _text(item, "url") or (entry.id if entry.id.startswith(("http://", "https://")) else "")
    entry.title = _text(item, "title")
    entry.content = _text(item, "content_html") or _text(item, "content_text")
    entry.summary = _text(item, "summary") or entry.content
    entry.published = _text(item, "date_published")
    entry.updated = _text(item, "date_modified")
    entry.authors = _authors(item)
    entry.images = tuple(filter(None, (_text(item, "image"), _text(item, "banner_image"))))
    tags = item.get("tags")
    if isinstance(tags, list):
        entry.subjects = tuple(dict.fromkeys(tag for tag in tags[:_MAX_VALUES] if isinstance(tag, str) and tag))
    outside = _text(item, "external_url")
    if outside:
        entry.links = (FeedLink(outside, "typed", "related"),)
    entry.enclosures = tuple(
        Enclosure(url, _text(part, "mime_type"), _number(part, "size_in_bytes"))
        for part in _records(item, "attachments")
        if (url := _text(part, "url"))
    )
    return entry


def _authors(record: dict[str, object]) -> tuple[str, ...]:
    """Version 1.1 has `authors`, 1.0 had `author`."""
    people = _records(record, "authors")
    one = record.get("author")
    if isinstance(one, dict):
        people.append(one)
    return tuple(dict.fromkeys(name for person in people if (name := _text(person, "name") or _text(person, "url"))))


def _records(record: dict[str, object], name: str) -> list[dict[str, object]]:
    values = record.get(name)
    return [value for value in values[:_MAX_VALUES] if isinstance(value, dict)] if isinstance(values, list) else []


def _text(record: dict[str, object], name: str) -> str:
    value = record.get(name)
    return value.strip() if isinstance(value, str) else ""


def _number(record: dict[str, object], name: str) -> str:
    value = record.get(name)
    return str(value) if isinstance(value, int) else ""
