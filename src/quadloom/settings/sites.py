"""The rules of one host: `[politeness]` with the `[[site]]` tables that match it."""

from __future__ import annotations

import msgspec

from quadloom.model.url import host_matches
from quadloom.settings.reading import OWN_PER_SITE, PolitenessSettings
from quadloom.settings.tree import Settings


def rules_for(host: str, settings: Settings) -> PolitenessSettings:
    """Politeness of one host. Of several `site` tables that match it, the first that names a value decides it; only
    then counts that one of them says it is the user's own."""
    changes: dict[str, float | str] = {}
    matching = [site for site in settings.site if host_matches(host, site.match)]
    if any(site.own for site in matching):
        changes = {"delay": 0.0, "ip_delay": 0.0, "adaptive": 0.0, "max_crawl_delay": 0.0, "per_site": OWN_PER_SITE}
    for site in reversed(matching):
        stated = {"delay": site.delay, "per_site": site.per_site, "robots": site.robots}
        changes |= {name: value for name, value in stated.items() if value is not None}
    return msgspec.structs.replace(settings.politeness, **changes) if changes else settings.politeness
