"""The sites of a fake web: names, subjects, sizes and habits of each host, all from the seed.

Habits (which robots.txt, whether there is a sitemap, a search page, validators) depend on the host's position and are
not random, so that even a web of six hosts has most of them.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from quadloom_lab.fakeweb.sites import words
from quadloom_lab.fakeweb.sites.chance import number
from quadloom_lab.fakeweb.sites.spec import SUBJECTS, Language, Subject, WebSpec

RobotsStyle = Literal["plain", "delay", "none", "patterns", "agent"]
SitemapStyle = Literal["index", "plain", "none"]
Validators = Literal["both", "etag", "modified", "none"]

_GROUPS = (3, 1, 2, 1)  # hosts of one registered domain, in turn
_PREFIXES: tuple[tuple[str, Subject | None], ...] = (("www", None), ("shop", "products"), ("blog", "news"))
_ROBOTS: tuple[RobotsStyle, ...] = ("plain", "patterns", "plain", "delay", "agent", "plain", "none")
_SITEMAPS: tuple[SitemapStyle, ...] = ("index", "plain", "index", "plain", "none")
_VALIDATORS: tuple[Validators, ...] = ("both", "etag", "modified", "both", "none")
_LANGUAGES: tuple[Language, ...] = ("de", "fr", "ru", "ja")


class HostPlan(msgspec.Struct, frozen=True):
    """One host. `size` counts its numbered pages at revision 0; the registry's are the people it names."""

    index: int
    name: str
    domain: str
    subject: Subject
    language: Language
    title: str
    size: int
    robots: RobotsStyle
    sitemap: SitemapStyle
    validators: Validators
    search: bool
    sessions: bool
    registry: bool = False


def plan_hosts(spec: WebSpec) -> tuple[HostPlan, ...]:
    """All hosts of the web; the last one is the registry, which names people for all the others."""
    if spec.curated:
        return _curated()
    names = _names(spec)
    sizes = _sizes(spec, len(names))
    hosts = [_host(spec, index, *names[index], sizes[index]) for index in range(len(names))]
    hosts.append(_registry(len(hosts), min(people_pool(hosts), 12 + spec.pages // 40)))
    return tuple(hosts)


def people_pool(hosts: list[HostPlan]) -> int:
    sizes = [host.size for host in hosts if host.subject == "people" and not host.registry]
    return pool_size(sizes)


def pool_size(sizes: list[int]) -> int:
    """Things that hosts of one subject describe: a quarter fewer than their pages, so that some are on two hosts."""
    return max([12, *sizes, -(-sum(sizes) * 3 // 4)])


def _names(spec: WebSpec) -> list[tuple[str, str, Subject, Language]]:
    """(host name, registered domain, subject, language) for every host but the registry."""
    found: list[tuple[str, str, Subject, Language]] = []
    wanted = max(1, spec.hosts - 1)
    group = 0
    while len(found) < wanted:
        subject = SUBJECTS[(group + spec.seed - 1) % len(SUBJECTS)]
        word = words.DOMAIN_WORDS[group % len(words.DOMAIN_WORDS)]
        round_ = group // len(words.DOMAIN_WORDS)
        ending = words.DOMAIN_ENDINGS[subject]
        top = "test" if group % 5 == 3 else "example"
        domain = f"{word}-{ending}{round_ or ''}.{top}"
        language: Language = "en"
        if spec.languages and group % 5 == 2:
            language = _LANGUAGES[group // 5 % len(_LANGUAGES)]
        for prefix, own in _PREFIXES[: _GROUPS[group % len(_GROUPS)]]:
            if len(found) < wanted:
                found.append((f"{prefix}.{domain}", domain, own or subject, language))
        group += 1
    return found


def _sizes(spec: WebSpec, count: int) -> list[int]:
    """Unequal sizes (a factor of about seven between largest and smallest) that add up to `spec.pages` exactly."""
    weights = [1 / (1 + number(spec.seed, "size", index) % 7) for index in range(count)]
    total = sum(weights)
    sizes = [max(1, int(spec.pages * weight / total)) for weight in weights]
    sizes[0] = max(1, sizes[0] + spec.pages - sum(sizes))
    return sizes


def _host(
    spec: WebSpec, index: int, name: str, domain: str, subject: Subject, language: Language, size: int
) -> HostPlan:
    word = domain.split("-")[0].capitalize()
    prefix = name.split(".")[0]
    title = f"{word} {subject.capitalize()}" + ("" if prefix == "www" else f" {prefix}")
    return HostPlan(
        index=index,
        name=name,
        domain=domain,
        subject=subject,
        language=language,
        title=title,
        size=size,
        robots=_ROBOTS[index % len(_ROBOTS)] if spec.faults else "plain",
        sitemap=_SITEMAPS[index % len(_SITEMAPS)],
        validators=_VALIDATORS[index % len(_VALIDATORS)],
        search=index % 3 == 0,
        sessions=spec.traps and index % 4 == 1,
    )


def _registry(index: int, size: int) -> HostPlan:
    return HostPlan(
        index=index,
        name="id.registry.example",
        domain="registry.example",
        subject="people",
        language="en",
        title="The Registry of Names",
        size=size,
        robots="plain",
        sitemap="plain",
        validators="both",
        search=False,
        sessions=False,
        registry=True,
    )


_CURATED: tuple[tuple[str, str, Subject, str, int], ...] = (
    ("www.alpha-books.example", "alpha-books.example", "books", "Alpha Books", 12),
    ("shop.alpha-books.example", "alpha-books.example", "products", "Alpha Shop", 8),
    ("www.linden-events.example", "linden-events.example", "events", "Linden Events", 18),
    ("www.saffron-kitchen.example", "saffron-kitchen.example", "recipes", "Saffron Kitchen", 8),
    ("www.northgate-people.example", "northgate-people.example", "people", "Northgate People", 12),
)


def _curated() -> tuple[HostPlan, ...]:
    hosts = [
        HostPlan(
            index=index,
            name=name,
            domain=domain,
            subject=subject,
            language="en",
            title=title,
            size=size,
            robots="plain",
            sitemap="plain",
            validators="both",
            search=index % 2 == 0,
            sessions=False,
        )
        for index, (name, domain, subject, title, size) in enumerate(_CURATED)
    ]
    return (*hosts, _registry(len(hosts), people_pool(hosts)))
