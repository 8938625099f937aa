"""`quadloom subscribe` and `quadloom changes`: notices when something changes."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import msgspec
from cyclopts import App

from quadloom.asking.sparql.prefixes import type_iris
from quadloom.cli.files import text_of
from quadloom.cli.session import Session, session
from quadloom.cli.words import counted
from quadloom.crawling.subscriptions.registry import state_of
from quadloom.crawling.subscriptions.standing_queries import StandingQueryFailure, failure_of
from quadloom.crawling.subscriptions.webhooks import NoticeMessage
from quadloom.crawling.subscriptions.websub import HubSubscription, read_topics
from quadloom.errors import NothingFound
from quadloom.model.subscription import Subscription
from quadloom.model.timestamps import iso_time, readable_time
from quadloom.stores.protocols.outbox import Delivery
from quadloom.warehouse import Warehouse

subscribe = App(name="subscribe")
Several = list[str] | None
_MAX_CHANGES = 8  # changes of one notice
_POLL_SECONDS = 0.5  # seconds between two polls with --follow


@subscribe.command
def add(
    *,
    id: str = "",
    name: str = "",
    url: Several = None,
    site: Several = None,
    type: Several = None,
    query: str = "",
    webhook: str = "",
    secret_file: Path | None = None,
) -> None:
    """Add a subscription. Its pages are read more often, and each change creates a notice.

    Parameters
    ----------
    id
        short name in URLs and notices [default: random]
    name
        name to display
    url
        a page; may be repeated
    site
        a site or host; may be repeated
    type
        pages about things of this type, such as schema:Event or an IRI; may be repeated
    query
        a SPARQL query, or a file with one; changes of its answer are reported
    webhook
        URL to POST notices to; without it, read them with `quadloom changes` or from the feed
    secret_file
        file with the secret that signs POSTed notices
    """
    s = session()
    subscription = Subscription(
        id=id or uuid4().hex[:12],
        name=name,
        urls=tuple(url or ()),
        sites=tuple(site or ()),
        types=tuple(iri for text in type or () for iri in type_iris(text)),
        query=_query(query),
        webhook=webhook,
        secret=_secret(secret_file),
        created_at=time.time(),
    )
    s.change("subscribe", msgspec.to_builtins(subscription), lambda warehouse: _add(warehouse, subscription))
    if s.json:
        s.emit({"id": subscription.id})
    else:
        s.write(subscription.id)  # on stdout, for scripts
        s.say(f"subscribed; to see its notices: `quadloom changes --subscription {subscription.id}`")


def _add(warehouse: Warehouse, subscription: Subscription) -> None:
    warehouse.subscriptions.add(warehouse.subscriptions.checked(subscription))


@subscribe.command(name="list")
def list_() -> None:
    """List all subscriptions and the delivery state of their webhooks."""
    s = session()
    with s.read() as warehouse:
        found = [
            _Listed(item, warehouse.stores.outbox.delivery(item.id), failure_of(warehouse.stores.catalog, item.id))
            for item in warehouse.subscriptions.all()
        ]
    columns = ["id", "name", "to", "webhook", "delivered", "state"]
    s.records(found, columns, _Listed.cells, as_json=_Listed.record)


class _Listed(NamedTuple):
    """A subscription and the state of its webhook. `trouble`: what is wrong with its query."""

    item: Subscription
    delivery: Delivery
    trouble: StandingQueryFailure | None

    def cells(self) -> list[object]:
        item = self.item
        about = " ".join((*item.urls, *item.sites, *item.types)) or item.query
        delivered = self.delivery.delivered if item.webhook else ""
        return [item.id, item.name, about, item.webhook, delivered, state_of(self.delivery, self.trouble)]

    def record(self) -> dict[str, object]:
        shown = msgspec.structs.replace(self.item, secret="set" if self.item.secret else "")
        return {**msgspec.structs.asdict(shown), "delivery": self.delivery, "trouble": self.trouble}


@subscribe.command
def remove(id: str) -> None:
    """Remove a subscription; its notices are kept for subscriptions.keep.

    Parameters
    ----------
    id
        id of the subscription, as in `subscribe list`
    """
    s = session()
    s.change("unsubscribe", {"id": id}, lambda warehouse: warehouse.subscriptions.remove(id))
    s.say(f"{id} removed")


@subscribe.command
def hubs() -> None:
    """List the pages whose WebSub hubs report changes, and the state of each subscription.

    Secrets and callback addresses are never printed.
    """
    s = session()
    with s.read() as warehouse:
        topics = sorted(read_topics(warehouse.stores.catalog), key=lambda topic: topic.href)
    now = time.time()

    def cells(topic: HubSubscription) -> list[object]:
        until = readable_time(topic.active_until) if topic.active_until else ""
        return [topic.href, topic.hub, topic.state(now), until, topic.pushes, topic.error]

    def record(topic: HubSubscription) -> dict[str, object]:
        names = ("topic", "hub", "active_until", "next_at", "pushes", "pushed_at", "error")
        return {"page": topic.href, "state": topic.state(now), **{name: getattr(topic, name) for name in names}}

    s.records(topics, ["page", "hub", "state", "until", "pushes", "error"], cells, as_json=record)


def changes(
    *,
    since: str = "",
    site: str = "",
    subscription: str = "",
    follow: bool = False,
    limit: int = 0,
    raw: bool = False,
) -> None:
    """Print what is new, changed and gone since a time, with the values before → after; or, if there are subscriptions,
    their notices, oldest first.

    Parameters
    ----------
    since
        a time: 2026-01-31, 2026-01-31T12:00, 1h, 7d, last-crawl; a whole number = only notices after this id
        [default: last-crawl if there is no subscription]
    site
        only pages of this site
    subscription
        only notices of this subscription
    follow
        wait for new notices until interrupted
    limit
        stop after this many notices or pages; 0 = all
    raw
        print the statements as N-Quads, with + and -
    """
    s = session()
    printed = 0
    with s.read() as warehouse:
        if (since and not since.isdigit()) or site or not (since or subscription or warehouse.subscriptions.all()):
            _print_since(s, warehouse, since or "last-crawl", site, limit)
            return
        after = int(since or 0)
        if subscription and all(known.id != subscription for known in warehouse.subscriptions.all()):
            hint = "to list them: `quadloom subscribe list`"
            raise NothingFound(f"there is no subscription {subscription!r}", hint=hint)
        while True:
            found = warehouse.subscriptions.notices(
                after, subscription=subscription, limit=min(limit - printed, 100) if limit else 100
            )
            for notice in found:
                _print(s, warehouse, notice, raw)
                after = notice.id
            printed += len(found)
            if (limit and printed >= limit) or (not found and not follow):
                break
            sys.stdout.flush()  # so that the reader of a pipe gets them now
            if not found:
                time.sleep(_POLL_SECONDS)
        if not printed:
            s.say("no changes" + (f" after notice {after}" if after else " yet"))


def _print_since(s: Session, warehouse: Warehouse, since: str, site: str, limit: int) -> None:
    """New, changed and gone pages; of a first crawl only how many, by site and form of the address."""
    from quadloom.asking.changes.since import changes_since
    from quadloom.asking.search import moment
    from quadloom.crawling.run.run_history import last_crawl_began

    catalog = warehouse.stores.catalog
    at = last_crawl_began(catalog) if since == "last-crawl" else moment(since)
    found = changes_since(warehouse.stores, warehouse.ask.versions, at, site=site)
    if s.json:
        s.emit(found)
        return
    if found.is_first:
        rows = [[group.site + group.template, group.new] for group in found.groups]
        s.table(["pages", "new"], rows)
        s.say(f"{counted(found.new, 'page')}, all read for the first time; there is nothing to compare with yet")
        return
    for page in found.pages[: limit or None]:
        kind = "gone" if page.is_gone else "new" if page.is_new else "changed"
        s.write(f"{kind}\t{iso_time(page.at)}\t{page.url}\t{page.title}")
        for change in page.changes[:_MAX_CHANGES]:
            s.write(f"  {change}")
        if len(page.changes) > _MAX_CHANGES:
            more = len(page.changes) - _MAX_CHANGES
            s.write(f"  … and {more} more; to see all: `quadloom show page {page.url} --history`")
        if page.reason:
            s.write(f"  not known: {page.reason}")
    begin = readable_time(at) if at else "the beginning"
    least = "at least " if found.more else ""
    s.say(f"since {begin}: {least}{found.new:,} new, {found.changed:,} changed, {found.gone:,} gone")
    if not found.pages and since == "last-crawl":
        s.say("hint: to look further back: `quadloom changes --since 7d`")


def _print(s: Session, warehouse: Warehouse, notice: NoticeMessage, raw: bool) -> None:
    if s.json:
        s.emit(notice)
        return
    s.write(f"{notice.id}\t{notice.at}\t{notice.subscription}\t{notice.kind}\t{notice.url}\t{notice.title}")
    if raw:
        for sign, lines in (("-", notice.removed), ("+", notice.added)):
            for line in lines:
                s.write(f"{sign} {line}")
        if notice.more:
            s.write(f"… and {notice.more} more")
        return
    found = warehouse.ask.readable(notice.added, notice.removed)
    for change in found[:_MAX_CHANGES]:
        s.write(f"  {change}")
    more = max(0, len(found) - _MAX_CHANGES) + notice.more
    if more:
        s.write(f"  … and {more} more; to see all: --raw")


def _query(text: str) -> str:
    """A query, or that in a file."""
    if not text or "{" in text:
        return text
    return text_of(Path(text), "give SPARQL, or a file with a query")


def _secret(path: Path | None) -> str:
    return text_of(path, "write the secret into a file that only you can read").strip() if path else ""
