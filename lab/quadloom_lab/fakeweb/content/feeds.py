"""Feeds, other XML and binaries: the pages of the fake web that are not HTML and not RDF."""

from __future__ import annotations

import json
import struct
import zlib
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

DAY = 86_400
EPOCH = 1_735_689_600  # 2025-01-01T00:00:00Z, revision 0 of every fake web

_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


class FeedItem(NamedTuple):
    url: str
    title: str
    summary: str
    updated: float  # unix time


class FeedPlan(NamedTuple):
    """A feed independent of its format."""

    url: str
    home: str
    title: str
    entries: tuple[FeedItem, ...]


def rfc822(moment: float) -> str:
    return format_datetime(datetime.fromtimestamp(moment, UTC), usegmt=True)


def iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def rss(channel: FeedPlan, total: int | None = None) -> str:
    """RSS 2.0; with a total, as an OpenSearch result list."""
    items = "".join(
        f"<item><title>{escape(entry.title)}</title><link>{escape(entry.url)}</link><guid>{escape(entry.url)}</guid>"
        f"<pubDate>{rfc822(entry.updated)}</pubDate><description>{escape(entry.summary)}</description></item>\n"
        for entry in channel.entries
    )
    extra = "" if total is None else f"<opensearch:totalResults>{total}</opensearch:totalResults>"
    return (
        f'{_XML}<rss version="2.0" xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/"><channel>'
        f"<title>{escape(channel.title)}</title><link>{escape(channel.home)}</link>"
        f"<description>{escape(channel.title)}</description>{extra}\n{items}</channel></rss>\n"
    )


def atom(channel: FeedPlan) -> str:
    entries = "".join(
        f"<entry><title>{escape(entry.title)}</title><link href={quoteattr(entry.url)}/><id>{escape(entry.url)}</id>"
        f"<updated>{iso(entry.updated)}</updated><summary>{escape(entry.summary)}</summary></entry>\n"
        for entry in channel.entries
    )
    newest = max((entry.updated for entry in channel.entries), default=EPOCH)
    return (
        f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom"><title>{escape(channel.title)}</title>'
        f'<id>{escape(channel.url)}</id><link rel="self" href={quoteattr(channel.url)}/>'
        f"<link href={quoteattr(channel.home)}/><updated>{iso(newest)}</updated>\n{entries}</feed>\n"
    )


def rss1(channel: FeedPlan) -> str:
    listed = "".join(f"<rdf:li rdf:resource={quoteattr(entry.url)}/>" for entry in channel.entries)
    items = "".join(
        f"<item rdf:about={quoteattr(entry.url)}><title>{escape(entry.title)}</title><link>{escape(entry.url)}</link>"
        f"<description>{escape(entry.summary)}</description><dc:date>{iso(entry.updated)}</dc:date></item>\n"
        for entry in channel.entries
    )
    return (
        f'{_XML}<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/">\n<channel rdf:about={quoteattr(channel.url)}>'
        f"<title>{escape(channel.title)}</title><link>{escape(channel.home)}</link>"
        f"<description>{escape(channel.title)}</description><items><rdf:Seq>{listed}</rdf:Seq></items></channel>\n"
        f"{items}</rdf:RDF>\n"
    )


def json_feed(channel: FeedPlan) -> str:
    items = [
        {"id": e.url, "url": e.url, "title": e.title, "content_text": e.summary, "date_published": iso(e.updated)}
        for e in channel.entries
    ]
    feed = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.title,
        "home_page_url": channel.home,
        "feed_url": channel.url,
        "items": items,
    }
    return json.dumps(feed, ensure_ascii=False)


def opml(channel: FeedPlan) -> str:
    outlines = "".join(
        f'<outline text={quoteattr(entry.title)} type="link" url={quoteattr(entry.url)}/>\n'
        for entry in channel.entries
    )
    return (
        f'{_XML}<opml version="2.0"><head><title>{escape(channel.title)}</title></head><body>{outlines}</body></opml>\n'
    )


def catalogue_xml(channel: FeedPlan) -> str:
    """XML in a vocabulary of the site's own."""
    rows = "".join(
        f'<record updated="{iso(entry.updated)}"><label>{escape(entry.title)}</label>'
        f"<note>{escape(entry.summary)}</note><page>{escape(entry.url)}</page></record>\n"
        for entry in channel.entries
    )
    start = f'<catalogue xmlns="http://registry.example/ns/catalogue#" title={quoteattr(channel.title)}>'
    return f"{_XML}{start}\n{rows}</catalogue>\n"


def svg(title: str, value: int) -> str:
    bars = "".join(
        f'<rect x="{10 + 20 * k}" y="{100 - (value >> k & 63)}" width="16" height="{value >> k & 63}"/>'
        for k in range(8)
    )
    start = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 180 110">'
    return f"{_XML}{start}<title>{escape(title)}</title>{bars}</svg>\n"


def xsd(title: str) -> str:
    return (
        f'{_XML}<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema" '
        'targetNamespace="http://registry.example/ns/catalogue#" elementFormDefault="qualified">'
        f"<xs:annotation><xs:documentation>{escape(title)}</xs:documentation></xs:annotation>"
        '<xs:element name="record" type="xs:string"/></xs:schema>\n'
    )


def png(value: int, side: int = 16) -> bytes:
    """A chequered square of 16 by 16 pixels in two colours taken from the value."""
    colours = value.to_bytes(8, "little")[:3], value.to_bytes(8, "little")[3:6]
    rows = b"".join(b"\0" + b"".join(colours[(x // 4 + y // 4) % 2] for x in range(side)) for y in range(side))

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pdf(title: str) -> bytes:
    """A valid PDF of one page that shows its title, with a correct cross-reference table."""
    shown = title.encode("ascii", "replace").replace(b"\\", b"").replace(b"(", b"").replace(b")", b"")
    stream = b"BT /F1 18 Tf 40 740 Td (" + shown + b") Tj ET"
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length " + str(len(stream)).encode() + b" >>\nstream\n" + stream + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Title (" + shown + b") >>",
    )
    body = b"%PDF-1.4\n"
    places = []
    for position, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{position} 0 obj\n".encode() + content + b"\nendobj\n"
    table = b"".join(f"{place:010d} 00000 n \n".encode() for place in places)
    end = f"trailer << /Size {len(objects) + 1} /Root 1 0 R /Info 6 0 R >>\nstartxref\n{len(body)}\n%%EOF\n".encode()
    return body + f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode() + table + end
