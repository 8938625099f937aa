"""What subscribers want notices about: URLs, sites, types of things, or the answer to a standing SPARQL query.

Subscriptions steer the crawl, too (section 5.3 of the Xyleme paper). Each is a virtual page that links to the pages it
names and that the personalisation jumps to, so they and what they lead to gain importance; and its pages are lifted
into the top share of all weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from quadloom.errors import UsageError
from quadloom.model.url import site_of

Vector = npt.NDArray[np.float64]

_TYPE = re.compile(rb"<http://www\.w3\.org/1999/02/22-rdf-syntax-ns#type> <([^>\s]+)>")
_JUMPS = 0.2  # of all jumps, those that lead to subscribed pages


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """`urls` are canonical keys, `types` full IRIs. `webhook` empty = read by feed, events or command line only."""

    id: str
    name: str = ""
    urls: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    query: str = ""
    webhook: str = ""
    secret: str = ""  # signs what is sent to the webhook
    created_at: float = 0.0

    def check(self) -> None:
        """Raises `UsageError` unless it is either to pages or to one query."""
        pages = bool(self.urls or self.sites or self.types)
        if pages == bool(self.query):
            raise UsageError(
                "a subscription is either to pages (URLs, sites, types) or to one query",
                hint="give --url, --site or --type, or else --query",
            )


class Interests:
    """All subscriptions to pages, looked up by what a page is."""

    def __init__(self, subscriptions: Iterable[Subscription]) -> None:
        self.subscriptions = tuple(subscriptions)
        self.queries = tuple(item for item in self.subscriptions if item.query)
        self.keys: dict[str, list[str]] = {}
        self._sites: dict[str, list[str]] = {}
        self._types: dict[str, list[str]] = {}
        for item in self.subscriptions:
            for place, names in ((self.keys, item.urls), (self._sites, item.sites), (self._types, item.types)):
                for name in names:
                    place.setdefault(name, []).append(item.id)

    def __bool__(self) -> bool:
        return bool(self.keys or self._sites or self._types)

    @property
    def has_types(self) -> bool:
        return bool(self._types)

    def of(self, key: str, host: str, nquads: bytes) -> list[str]:
        """Subscriptions that this page belongs to, each once, in a stable order."""
        found = [*self.keys.get(key, ()), *self._sites.get(host, ()), *self._sites.get(site_of(host), ())]
        if self._types:
            for iri in types_in(nquads):
                found += self._types.get(iri, ())
        return list(dict.fromkeys(found))


def types_in(nquads: bytes) -> list[str]:
    """Classes that the statements name, each once."""
    return [iri.decode("utf-8", "replace") for iri in dict.fromkeys(_TYPE.findall(nquads))]


def personalization(pages: int, subscribed: Sequence[npt.NDArray[np.intp]]) -> Vector | None:
    """Where jumps lead: most of them anywhere, the rest to the virtual page of one subscription after another, each of
    which passes its part on to its pages. None = no subscription names a known page, so anywhere."""
    virtual = [ids for ids in subscribed if len(ids)]
    if not virtual or not pages:
        return None
    vector = np.full(pages, (1.0 - _JUMPS) / pages)
    for ids in virtual:
        np.add.at(vector, ids, _JUMPS / len(virtual) / len(ids))
    return vector
