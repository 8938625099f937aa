"""All settings: one frozen tree, every field with default, unit and meaning.

docs/reference/settings.md is generated from this tree (`make docs`), and a test fails if the two differ.
Loading (files, environment, flags, origins) is in `quadloom.settings.loading`.
"""

from __future__ import annotations

import re

import msgspec

from quadloom.settings.data import (
    AuditSettings,
    FreshnessSettings,
    IndexSettings,
    ServiceSettings,
    SubscriptionSettings,
    TopicSettings,
    TransformSettings,
)
from quadloom.settings.reading import (
    CrawlSettings,
    FetchSettings,
    GuardSettings,
    LimitSettings,
    PolitenessSettings,
    SiteSettings,
)
from quadloom.settings.storage import ClusterSettings, StoreSettings, WebSettings


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be set. Sections are TOML tables; environment as QUADLOOM_SECTION__KEY."""

    crawl: CrawlSettings = CrawlSettings()
    politeness: PolitenessSettings = PolitenessSettings()
    limits: LimitSettings = LimitSettings()
    guard: GuardSettings = GuardSettings()
    fetch: FetchSettings = FetchSettings()
    freshness: FreshnessSettings = FreshnessSettings()
    index: IndexSettings = IndexSettings()
    transform: TransformSettings = TransformSettings()
    audit: AuditSettings = AuditSettings()
    topic: TopicSettings = TopicSettings()
    stores: StoreSettings = StoreSettings()
    subscriptions: SubscriptionSettings = SubscriptionSettings()
    cluster: ClusterSettings = ClusterSettings()
    web: WebSettings = WebSettings()
    service: list[ServiceSettings] = []
    site: list[SiteSettings] = []


def without_password(text: str) -> str:
    """The URL with its password masked: `user:***@host`, `password=***`."""
    return re.sub(r"(?i)(?<=[?&]password=)[^&]*", "***", re.sub(r"(://[^/@\s]*?):[^/@\s]*@", r"\1:***@", text))
