"""What site owners tell us: lists of URLs, a changed sitemap, WebSub pings. The web layer mounts these.

Publication is an offer, not an order. It never widens the scope, it never goes round politeness, and what it can make
us fetch is bounded. A page known already is asked for again at once only where the publisher proves to be entitled: by
a token of this warehouse, or by a WebSub subscription that we asked for ourselves and that the hub signs.

WebSub (W3C Recommendation of 2018): `subscription_request` is what we POST to a page's hub; the hub then asks whether
we meant it (`verify_intent`, section 5.3), and sends content with an HMAC (`receive`, section 7.1). Content is not
believed as such; it tells that the topic has changed, and the topic itself is then read through the usual phases.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Literal
from urllib.parse import urlencode

import msgspec

from quadloom.errors import NothingFound, UrlError, UsageError
from quadloom.model.link import Discovery
from quadloom.model.url import Url
from quadloom.run.control import Value
from quadloom.run.seeding import seed_discoveries
from quadloom.stores.protocols import Catalog, Frontier, ScopeRules

LIST = 1000  # URLs in one publication
_PREFIX = "websub:"
_LEASE = 10 * 86400  # seconds we ask a hub for
_ALGORITHMS = {"sha256": hashlib.sha256, "sha384": hashlib.sha384, "sha512": hashlib.sha512}  # sha1 is refused


class Published(msgspec.Struct, frozen=True):
    """What became of a publication; the numbers add up to the URLs offered."""

    new: int = 0
    refreshed: int = 0
    known: int = 0
    refused: int = 0  # out of scope
    invalid: int = 0


class WebSub(msgspec.Struct, frozen=True, kw_only=True):
    """A subscription of ours at a hub. `active_until` 0 = the hub has not verified it yet."""

    id: str
    topic: str
    hub: str
    secret: str
    active_until: float = 0.0


class Publication(msgspec.Struct, frozen=True, kw_only=True):
    """Control request `publish`: any of the functions below, done by whoever owns the warehouse.

    `urls`, `sitemap`: `url` or `urls`. `verify`: `id`, `query`. `content`: `id`, `body`, `signature`.
    """

    kind: Literal["urls", "sitemap", "verify", "content"]
    urls: list[str] = []
    url: str = ""
    owner: bool = False
    id: str = ""
    query: dict[str, str] = {}
    body: bytes = b""
    signature: str = ""


def accept(
    publication: Publication, *, frontier: Frontier, catalog: Catalog, scope: ScopeRules, now: float
) -> dict[str, Value]:
    """Do it, and say what became of it."""
    if publication.kind == "verify":
        return {"challenge": verify_intent(catalog, publication.id, publication.query, now)}
    if publication.kind == "content":
        done = receive(catalog, frontier, publication.id, publication.body, publication.signature, now)
        return {"requested": done}
    if publication.kind == "sitemap":
        return msgspec.structs.asdict(ping_sitemap(frontier, scope, publication.url, now))
    return msgspec.structs.asdict(publish(frontier, scope, publication.urls, now, owner=publication.owner))


def pushed(publication: Publication, answer: Mapping[str, Value], catalog: Catalog) -> list[str]:
    """Pages whose change somebody vouches for: the owner of their site, or a hub by its signature. Their visits tell
    the schedule more than others."""
    if publication.kind == "content":
        return [websub(catalog, publication.id).topic] if answer.get("requested") else []
    owned = publication.owner and publication.kind == "urls" and answer.get("refreshed")
    return [item.href for item in _parsed(publication.urls)[0]] if owned else []


def publish(
    frontier: Frontier, scope: ScopeRules, urls: Sequence[str], now: float, *, owner: bool = False
) -> Published:
    """POST of a URL list: new ones are queued before ordinary links, known ones read again where the owner says so."""
    if len(urls) > LIST:
        raise UsageError(f"{len(urls)} URLs in one publication", hint=f"send {LIST} at most, or ping a sitemap")
    found, invalid = _parsed(urls)
    inside = [item for item in found if scope.verdict(item.href, item.host, item.depth) is None]
    known = [item for item in inside if frontier.explain(item.key, now) is not None]
    keys = {item.key for item in known}
    added = frontier.add([item for item in inside if item.key not in keys], now)
    refreshed = frontier.request(known, now) if owner and known else 0
    return Published(
        new=added.new,
        refreshed=refreshed,
        known=added.known + len(known) - refreshed,
        refused=added.refused + len(found) - len(inside),
        invalid=invalid,
    )


def ping_sitemap(frontier: Frontier, scope: ScopeRules, url: str, now: float) -> Published:
    """A sitemap has changed. It is read as soon as politeness allows; what it lists follows by its own dates."""
    item = seed_discoveries([url], kind="sitemap", priority=1)[0]
    if scope.verdict(item.href, item.host, item.depth) is not None:
        return Published(refused=1)
    if frontier.explain(item.key, now) is None:
        return Published(new=frontier.add([item], now).new)
    return Published(refreshed=frontier.request([item], now))


def websub_subscribe(catalog: Catalog, id: str, topic: str, hub: str, secret: str) -> WebSub:
    """Remember that we are about to ask a hub; what it says about anything else is refused."""
    subscription = WebSub(id=id, topic=Url.parse(topic).href, hub=Url.parse(hub).href, secret=secret)
    _write(catalog, subscription)
    return subscription


def subscription_request(subscription: WebSub, callback: str) -> bytes:
    """Form body to POST to the hub. The callback must be the address of this very subscription (section 5.1)."""
    fields = {
        "hub.callback": callback,
        "hub.mode": "subscribe",
        "hub.topic": subscription.topic,
        "hub.lease_seconds": str(_LEASE),
        "hub.secret": subscription.secret,
    }
    return urlencode(fields).encode()


def verify_intent(catalog: Catalog, id: str, query: Mapping[str, str], now: float) -> str:
    """The hub's GET: the challenge to echo with status 200. Raises `NothingFound` (status 404) where we did not ask."""
    subscription = websub(catalog, id)
    mode, topic = query.get("hub.mode", ""), query.get("hub.topic", "")
    if topic != subscription.topic:
        raise NothingFound(f"{topic[:200]!r} is not the topic of {id}", hint="")
    if mode == "denied":
        catalog.put(_PREFIX + id, None)
        return ""
    if mode != "subscribe" or not query.get("hub.challenge"):
        raise NothingFound(f"the hub asks for {mode[:20]!r}, which we did not ask it for", hint="")
    lease = query.get("hub.lease_seconds", "")
    seconds = int(lease) if lease.isascii() and lease.isdigit() and len(lease) < 12 else _LEASE
    _write(catalog, msgspec.structs.replace(subscription, active_until=now + seconds))
    return query["hub.challenge"]


def receive(catalog: Catalog, frontier: Frontier, id: str, body: bytes, signature: str, now: float) -> bool:
    """The hub's POST. True = the topic will be read again. A wrong signature is ignored in silence, as section 8 has
    it: the answer is 2xx in any case, so that nobody learns to guess."""
    subscription = websub(catalog, id)
    if subscription.active_until < now or not signed(body, signature, subscription.secret):
        return False
    frontier.request(seed_discoveries([subscription.topic], kind="published", priority=0), now)
    return True


def signed(body: bytes, signature: str, secret: str) -> bool:
    """`method=hexdigest`, compared in constant time."""
    method, _, digest = signature.partition("=")
    algorithm = _ALGORITHMS.get(method.lower())
    if algorithm is None or not secret:
        return False
    expected = hmac.new(secret.encode(), body, algorithm).hexdigest()
    return hmac.compare_digest(expected, digest.lower().strip())


def websub(catalog: Catalog, id: str) -> WebSub:
    stored = catalog.get(_PREFIX + id)
    if stored is None:
        raise NothingFound(f"there is no WebSub subscription {id!r}", hint="")
    return msgspec.json.decode(stored, type=WebSub)


def _write(catalog: Catalog, subscription: WebSub) -> None:
    catalog.put(_PREFIX + subscription.id, msgspec.json.encode(subscription))


def _parsed(urls: Sequence[str]) -> tuple[list[Discovery], int]:
    """Each page once, and how many were no web address (or named twice)."""
    found: dict[str, Discovery] = {}
    for text in urls:
        try:
            item = seed_discoveries([text], kind="published", priority=1)[0]
        except UrlError:
            continue
        found.setdefault(item.key, item)
    return list(found.values()), len(urls) - len(found)
