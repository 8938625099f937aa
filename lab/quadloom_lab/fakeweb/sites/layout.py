"""The two-way map between page references and URLs, computed and never stored.

A `PageRef` names a page by host, area and number. `Layout.url` gives its URL and `Layout.find` reads one back, so the
server needs no table of pages and a web of 20,000 pages is ready at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from quadloom_lab.fakeweb.sites.catalogue import Catalogue, ThingView
from quadloom_lab.fakeweb.sites.chance import number, share
from quadloom_lab.fakeweb.sites.hosts import HostPlan, plan_hosts, pool_size
from quadloom_lab.fakeweb.sites.spec import SUBJECTS, Subject, WebSpec
from quadloom_lab.fakeweb.sites.things import Thing
from quadloom_lab.fakeweb.sites.words import SECTIONS

Area = Literal[
    "home", "listing", "facet", "item", "about", "contact", "search", "searchfeed", "opensearch", "calendar",
    "robots", "sitemap", "special", "private", "open", "hidden", "sponsored", "photo", "style", "feed",
    "id", "page", "data",
]  # fmt: skip
Form = Literal[
    "html", "rss", "atom", "rss1", "jsonfeed", "ttl", "rdf", "nt", "trig", "nq", "jsonld",
    "xml", "svg", "opml", "xsd", "png", "pdf",
]  # fmt: skip

PER_LISTING = 24
PER_SITEMAP = 200
PRIVATE = 3  # pages of each kind that only some crawlers may or can find: private, open, hidden, sponsored

SPECIALS = (
    "missing", "gone", "moved", "found", "other", "temporary", "permanent", "error", "busy", "slow", "away", "chain",
    "loop", "flaky",
)  # fmt: skip

_FORMS: tuple[tuple[float, tuple[Form, ...]], ...] = (
    (0.80, ("html",)),
    (0.85, ("rss", "atom", "rss1", "jsonfeed")),
    (0.90, ("ttl", "rdf", "nt", "trig", "nq", "jsonld")),
    (0.95, ("xml", "svg", "opml", "xsd")),
    (1.00, ("png", "pdf")),
)
_CURATED_FORMS: tuple[Form, ...] = ("ttl", "rss", "jsonld", "atom")
_FOLDERS: dict[Form, str] = {
    "rss": "feeds", "atom": "feeds", "rss1": "feeds", "jsonfeed": "feeds", "ttl": "data", "rdf": "data",
    "nt": "data", "trig": "data", "nq": "data", "jsonld": "data", "xml": "xml", "svg": "xml", "opml": "xml",
    "xsd": "xml", "png": "files", "pdf": "files",
}  # fmt: skip
_ENDINGS: dict[str, str] = {"rss1": "rss.rdf", "jsonfeed": "json"}

_FIXED: dict[str, Area] = {
    "/": "home", "/about": "about", "/contact": "contact", "/robots.txt": "robots", "/opensearch.xml": "opensearch",
    "/style.css": "style", "/feed.xml": "feed", "/search": "search", "/search.rss": "searchfeed",
}  # fmt: skip
_FIXED_PATHS = {area: path for path, area in _FIXED.items()}
_ITEM = re.compile(r"^/[^/]+/(\d+)[-.][a-z0-9.-]+$")
_LISTING = re.compile(r"^/page/([1-9]\d*)$")
_SITEMAP = re.compile(r"^/sitemap(?:-([1-9]\d*))?\.xml(\.gz)?$")
_CALENDAR = re.compile(r"^/calendar/([1-9]\d{3})/(0[1-9]|1[0-2])$")
_SPECIAL = re.compile(rf"^/({'|'.join(SPECIALS)})/(\d+)(?:/([12b]))?$")
_CORNER = re.compile(r"^/(private|hidden|sponsored)/(open-)?(\d)$")
_PHOTO = re.compile(r"^/photos/(\d+)\.png$")
_PERSON = re.compile(r"^/(id|page|data)/person/(\d+)(?:\.(ttl|rdf|jsonld|nt))?$")


class PageRef(NamedTuple):
    """A page: host index, area, number within the area; `extra` is a query or an ending, if the area has one."""

    host: int
    area: Area
    number: int = 0
    extra: str = ""


class Layout:
    """Hosts, things and URLs of one web."""

    def __init__(self, spec: WebSpec) -> None:
        self.spec = spec
        self.hosts = plan_hosts(spec)
        self.authorities = tuple(self._authority(host) for host in self.hosts)
        self.bases = tuple(f"http://{authority}" for authority in self.authorities)
        self._by_authority = {
            authority: host.index for host, authority in zip(self.hosts, self.authorities, strict=True)
        }
        self._special_starts = tuple(accumulate((self.specials(host) for host in self.hosts), initial=0))
        self._offsets, pools = self._spread_things()
        self.registered = self.hosts[-1].size
        self.catalogue = Catalogue(spec.seed, pools, self.registered, f"{self.bases[-1]}/id/person/")
        self.corners = 0 if spec.curated else PRIVATE
        self.form = lru_cache(maxsize=65536)(self._form)
        self.item_path = lru_cache(maxsize=65536)(self._item_path)

    def _authority(self, host: HostPlan) -> str:
        spec = self.spec
        if spec.addressing == "ports":
            return f"127.0.0.1:{spec.port + host.index}"
        name = self.address(host.index) if spec.addressing == "addresses" else host.name
        return f"{name}:{spec.port}" if spec.port else name

    @staticmethod
    def address(index: int) -> str:
        """The host's own loopback address, for webs in which each host has one."""
        return f"127.1.{index // 250}.{index % 250 + 1}"

    def _spread_things(self) -> tuple[tuple[int, ...], dict[Subject, int]]:
        """First thing of each host and the number of things per subject; neighbours overlap by a quarter."""
        offsets = [0] * len(self.hosts)
        pools: dict[Subject, int] = {}
        for subject in SUBJECTS:
            mine = [host for host in self.hosts if host.subject == subject and not host.registry]
            pools[subject] = pool_size([host.size for host in mine])
            position = 0
            for host in mine:
                offsets[host.index] = position * 3 // 4
                position += host.size
        return tuple(offsets), pools

    def host_of(self, authority: str) -> HostPlan | None:
        index = self._by_authority.get(authority)
        return None if index is None else self.hosts[index]

    def size(self, host: HostPlan, revision: int) -> int:
        """Numbered pages of the host at this revision: news sites grow."""
        return host.size + (self.spec.growth * revision if host.subject == "news" else 0)

    def listings(self, host: HostPlan, revision: int) -> int:
        return max(1, -(-self.size(host, revision) // PER_LISTING))

    def specials(self, host: HostPlan) -> int:
        return max(3, host.size // 16) if self.spec.faults and not host.registry else 0

    def special(self, host: HostPlan, position: int) -> str:
        """Each host continues the list of the previous one, so that a web of six hosts already has every kind."""
        return SPECIALS[(position + self._special_starts[host.index]) % len(SPECIALS)]

    def section(self, host: HostPlan) -> str:
        return "browse" if host.registry else SECTIONS[host.language][host.subject]

    def thing_index(self, host: HostPlan, item: int) -> int:
        if host.registry:
            return item
        return (self._offsets[host.index] + item) % self.catalogue.pool(host.subject)

    def name(self, host: HostPlan, item: int) -> str:
        return self.catalogue.name(host.subject, self.thing_index(host, item))

    def describers(self, subject: Subject, thing: int) -> Iterator[PageRef]:
        """Every page that is about the thing, at revision 0."""
        pool = self.catalogue.pool(subject)
        for host in self.hosts:
            if host.subject != subject:
                continue
            if host.registry:
                if thing < host.size:
                    yield PageRef(host.index, "page", thing)
                continue
            first = (thing - self._offsets[host.index]) % pool
            yield from (PageRef(host.index, "item", item) for item in range(first, host.size, pool))

    def thing(self, ref: PageRef, version: int) -> Thing:
        """What an item page (or a page of the registry) is about, as its host describes it."""
        host = self.hosts[ref.host]
        index = self.thing_index(host, ref.number)
        if host.registry:
            iri = f"{self.bases[ref.host]}/id/person/{index}"
        else:
            iri = f"{self.url(ref)}#it"
        view = ThingView(iri, self._same_as(host, index, ref), host.language, ref.host, version)
        return self.catalogue.describe(host.subject, index, view)

    def _same_as(self, host: HostPlan, index: int, ref: PageRef) -> tuple[str, ...]:
        if host.subject == "people" and not host.registry and index < self.registered:
            return (f"{self.bases[-1]}/id/person/{index}",)
        others = [other for other in self.describers(host.subject, index) if other.host != ref.host]
        return tuple(f"{self.url(other)}#it" for other in others[:2] if self.is_html(other))

    def is_html(self, ref: PageRef) -> bool:
        return ref.area == "item" and self.form(ref.host, ref.number) == "html"

    def _form(self, host: int, item: int) -> Form:
        if not self.spec.files or item == 0:
            return "html"
        if self.spec.curated:  # mostly HTML, and a few files for variety
            return _CURATED_FORMS[item // 7 % len(_CURATED_FORMS)] if item % 7 == 6 else "html"
        value = share(self.spec.seed, "form", host, item)
        for limit, forms in _FORMS:
            if value < limit:
                return forms[number(self.spec.seed, "form of", host, item) % len(forms)]
        raise AssertionError("the last limit is 1")

    def _item_path(self, host: int, item: int) -> str:
        form = self.form(host, item)
        plan = self.hosts[host]
        if form == "html":
            return f"/{self.section(plan)}/{item}-{self.catalogue.slug(plan.subject, self.thing_index(plan, item))}"
        return f"/{_FOLDERS[form]}/{item}.{_ENDINGS.get(form, form)}"

    def url(self, ref: PageRef) -> str:
        return self.bases[ref.host] + self.path(ref)

    def path(self, ref: PageRef) -> str:
        area, count = ref.area, ref.number
        host = self.hosts[ref.host]
        match area:
            case "item":
                return self.item_path(ref.host, count)
            case "listing":
                return f"/{self.section(host)}/" + (f"page/{count}" if count else "")
            case "facet":
                return f"/{self.section(host)}/?{ref.extra}"
            case "search" | "searchfeed":
                return f"{_FIXED_PATHS[area]}?{ref.extra}"
            case "calendar":
                return f"/calendar/{count // 12}/{count % 12 + 1:02d}"
            case "sitemap":
                return "/sitemap.xml" if count == 0 else f"/sitemap-{count}.xml" + (".gz" if count % 2 == 0 else "")
            case "special":
                return f"/{self.special(host, count)}/{count}" + (f"/{ref.extra}" if ref.extra else "")
            case "open":
                return f"/private/open-{count}"
            case "private" | "hidden" | "sponsored":
                return f"/{area}/{count}"
            case "photo":
                return f"/photos/{count}.png"
            case "id" | "page" | "data":
                return f"/{area}/person/{count}" + (f".{ref.extra}" if ref.extra else "")
            case _:
                return _FIXED_PATHS[area]

    def locate(self, url: str) -> PageRef | None:
        """The page at an absolute URL; None for a page or host that this web does not have."""
        parts = urlsplit(url)
        host = self.host_of(parts.netloc)
        if host is None or parts.scheme != "http":
            return None
        return self.find(host, (parts.path or "/") + (f"?{parts.query}" if parts.query else ""))

    def find(self, host: HostPlan, target: str, revision: int = 1 << 30) -> PageRef | None:
        """The page at a request target. Session ids are ignored, unknown query parameters too, as servers do.

        Without a revision, pages that will exist at some revision are found as well.
        """
        path, _, query = target.partition("?")
        fixed = _FIXED.get(path)
        if fixed is not None:
            return self._fixed(host, fixed, query)
        if host.registry and (person := _PERSON.match(path)):
            return self._person(host, person)
        section = f"/{self.section(host)}"
        if path.startswith(section + "/"):
            rest = path[len(section) :]
            if rest == "/":
                known = "&".join(pair for pair in query.split("&") if pair.startswith(("sort=", "view=")))
                return PageRef(host.index, "facet", 0, known) if known else PageRef(host.index, "listing")
            if listing := _LISTING.match(rest):
                return self._within(PageRef(host.index, "listing", int(listing[1])), self.listings(host, revision))
        return self._numbered(host, path, revision)

    def _fixed(self, host: HostPlan, area: Area, query: str) -> PageRef | None:
        if area in ("search", "searchfeed", "opensearch") and not host.search:
            return None
        if host.registry and area in ("about", "contact", "feed"):
            return None
        return PageRef(host.index, area, 0, query if area in ("search", "searchfeed") else "")

    def _person(self, host: HostPlan, match: re.Match[str]) -> PageRef | None:
        area: Area = "id" if match[1] == "id" else "page" if match[1] == "page" else "data"
        if (area == "data") != bool(match[3]):
            return None
        return self._within(PageRef(host.index, area, int(match[2]), match[3] or ""), host.size)

    def _numbered(self, host: HostPlan, path: str, revision: int) -> PageRef | None:
        if sitemap := _SITEMAP.match(path):
            file = PageRef(host.index, "sitemap", int(sitemap[1] or 0))
            return file if path == self.path(file) and self._has_sitemap(host, file.number, revision) else None
        if calendar := _CALENDAR.match(path):
            return (
                PageRef(host.index, "calendar", int(calendar[1]) * 12 + int(calendar[2]) - 1)
                if self.calendar(host)
                else None
            )
        if host.registry:
            return None
        if special := _SPECIAL.match(path):
            ref = self._within(PageRef(host.index, "special", int(special[2]), special[3] or ""), self.specials(host))
            return ref if ref and self.special(host, ref.number) == special[1] else None
        if corner := _CORNER.match(path):
            return self._corner(host, corner)
        if photo := _PHOTO.match(path):
            return self._within(PageRef(host.index, "photo", int(photo[1])), self.size(host, revision))
        if item := _ITEM.match(path):
            ref = self._within(PageRef(host.index, "item", int(item[1])), self.size(host, revision))
            return ref if ref and self.path(ref) == path else None
        return None

    def _corner(self, host: HostPlan, match: re.Match[str]) -> PageRef | None:
        area: Area = "hidden" if match[1] == "hidden" else "sponsored" if match[1] == "sponsored" else "private"
        if match[2]:
            if area != "private":
                return None
            area = "open"
        return self._within(PageRef(host.index, area, int(match[3])), self.corners)

    @staticmethod
    def _within(ref: PageRef, count: int) -> PageRef | None:
        return ref if ref.number < count else None

    def calendar(self, host: HostPlan) -> bool:
        return self.spec.traps and host.subject == "events"

    def sitemap_files(self, host: HostPlan, revision: int) -> int:
        """Files below the sitemap index; 0 if `/sitemap.xml` lists the pages itself."""
        return -(-self.size(host, revision) // PER_SITEMAP) if host.sitemap == "index" else 0

    def _has_sitemap(self, host: HostPlan, position: int, revision: int) -> bool:
        return host.sitemap != "none" and position <= self.sitemap_files(host, revision)
