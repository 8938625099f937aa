"""Notices as an Atom feed (RFC 4287) and as server-sent events; the web layer serves both.

Entry ids contain the notice's id, so a reader that polls can tell old entries from new. All text from pages is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

import msgspec

from quadloom.asking.changes.readable_changes import readable
from quadloom.crawling.subscriptions.webhooks import NoticeMessage

_LINES = 12  # changes shown in an entry
_UNPRINTABLE = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF, *range(0xD800, 0xE000)], "\ufffd")


def atom(messages: Sequence[NoticeMessage], *, title: str, self_url: str, updated: str) -> bytes:
    """A feed, the newest notice first. `updated`: its date if it has no entries, RFC 3339."""
    newest = sorted(messages, key=lambda message: message.id, reverse=True)
    head = (
        '<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<id>{_text(self_url)}</id>\n<title>{_text(title)}</title>\n"
        f"<updated>{_text(newest[0].at if newest else updated)}</updated>\n"
        f'<link rel="self" type="application/atom+xml" href={_attribute(self_url)}/>\n'
        "<author><name>Quadloom</name></author>\n"
    )
    return (head + "".join(_entry(message, self_url) for message in newest) + "</feed>\n").encode()


def _entry(message: NoticeMessage, self_url: str) -> str:
    subject = message.title or message.url or message.name or message.subscription
    changes = readable(message.added, message.removed)
    lines = [str(change) for change in changes[:_LINES]]
    hidden = len(changes) + message.more - len(lines)
    if hidden > 0:
        lines.append(f"… and {hidden} more")
    link = f"<link href={_attribute(message.url)}/>" if message.url else ""
    return (
        f"<entry><id>{_text(self_url)}#{message.id}</id><title>{_text(f'{message.kind}: {subject}')}</title>"
        f"<updated>{_text(message.at)}</updated>{link}"
        f'<content type="text">{_text(chr(10).join(lines))}</content></entry>\n'
    )


def event(message: NoticeMessage) -> bytes:
    """One server-sent event. A client that reconnects sends the id back as Last-Event-ID and misses nothing."""
    return b"id: %d\nevent: notice\ndata: %s\n\n" % (message.id, msgspec.json.encode(message))


def _text(value: str) -> str:
    return escape(value.translate(_UNPRINTABLE))


def _attribute(value: str) -> str:
    return quoteattr(value.translate(_UNPRINTABLE))
