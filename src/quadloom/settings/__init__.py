"""All settings as one frozen, typed tree, and how they are loaded.

In: TOML files, the environment and flags (`loading.py`); secrets by `secrets.py`. Nothing else reads the environment.
Out: `Settings` (`tree.py`), with the origin of each value. May import `errors` only.
"""

from quadloom.settings.data import (
    AuditSettings,
    FreshnessSettings,
    IndexSettings,
    ServiceSettings,
    SubscriptionSettings,
    TopicSettings,
    TransformSettings,
)
from quadloom.settings.lengths import length_of, seconds
from quadloom.settings.reading import (
    CrawlSettings,
    FetchSettings,
    GuardSettings,
    LimitSettings,
    PolitenessSettings,
    SiteSettings,
)
from quadloom.settings.storage import ClusterSettings, StoreSettings, WebSettings
from quadloom.settings.tree import Settings, without_password

__all__ = [
    "AuditSettings",
    "ClusterSettings",
    "CrawlSettings",
    "FetchSettings",
    "FreshnessSettings",
    "GuardSettings",
    "IndexSettings",
    "LimitSettings",
    "PolitenessSettings",
    "ServiceSettings",
    "Settings",
    "SiteSettings",
    "StoreSettings",
    "SubscriptionSettings",
    "TopicSettings",
    "TransformSettings",
    "WebSettings",
    "length_of",
    "seconds",
    "without_password",
]
