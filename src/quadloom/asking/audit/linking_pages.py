"""Which pages link to those that could not be fetched: a dead link is corrected on the page that has it."""

from __future__ import annotations

import msgspec

from quadloom.asking.audit.groups import DefectGroup
from quadloom.asking.audit.report import AuditReport
from quadloom.model.url import Url
from quadloom.planning.ranking.link_lookup import links_touching
from quadloom.stores.opened import Stores

_MAX_LISTED = 3  # linking pages of one address
_MAX_LOOKED_UP = 200  # linking pages of one address that are looked up in the catalog


def with_linking_pages(report: AuditReport, stores: Stores) -> AuditReport:
    """The report with `linked_from` in each group of pages that could not be fetched. One scan of the links."""
    pages = {
        Url.parse(one.page).fingerprint: one.page
        for group in report.groups
        if _is_dead(group)
        for one in group.examples
    }
    if not pages:
        return report
    links = links_touching(stores.places.links, list(pages))
    sources: dict[int, list[int]] = {}
    for source, target in zip(links.sources.tolist(), links.targets.tolist(), strict=True):
        if target in pages and source != target:
            sources.setdefault(target, []).append(source)
    named = {pages[target]: _addresses(stores, found) for target, found in sources.items()}
    return msgspec.structs.replace(report, groups=tuple(_with_links(group, named) for group in report.groups))


def _is_dead(group: DefectGroup) -> bool:
    return bool(group.examples) and group.examples[0].phase == "fetch" and group.severity != "info"


def _addresses(stores: Stores, fingerprints: list[int]) -> tuple[str, ...]:
    """The first of them by address, so that the report of an unchanged warehouse stays the same."""
    rows = stores.catalog.pages(fingerprints[:_MAX_LOOKED_UP])
    return tuple(sorted(row.href for row in rows.values())[:_MAX_LISTED])


def _with_links(group: DefectGroup, named: dict[str, tuple[str, ...]]) -> DefectGroup:
    if not _is_dead(group):
        return group
    found = {one.page: named[one.page] for one in group.examples if named.get(one.page)}
    return msgspec.structs.replace(group, linked_from=found)
