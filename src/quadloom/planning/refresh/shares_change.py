"""What people may change about a running crawl's bandwidth, weights and order, and which values are refused."""

from __future__ import annotations

import msgspec

from quadloom.errors import UsageError
from quadloom.planning.policy.objectives import Policy
from quadloom.settings.fields import MOST_WEIGHT


class SharesChange(msgspec.Struct, frozen=True):
    """Control request `freshness`; None = as before. The fields are the settings of the same names."""

    bandwidth: float | None = None
    suspect_share: float | None = None
    discovery_share: float | None = None
    policy: Policy | None = None
    alpha: float | None = None
    chi: float | None = None
    guided_share: float | None = None

    def check(self, order: str) -> None:
        """Raise `UsageError` for a wrong value. `order`: that of first reads. The two shares of the bandwidth are
        checked where they are set, because their sum counts."""
        if self.bandwidth is not None and not 0.0 <= self.bandwidth <= MOST_WEIGHT:
            raise UsageError(
                f"the bandwidth must be between 0 and {MOST_WEIGHT:,.0f}, not {self.bandwidth:g}",
                hint="0 = first reads as politeness allows; to stop fetching for a while: `quadloom pause`",
            )
        for name, value, hint in (
            ("χ", self.chi, "1 weighs both kinds alike"),
            (
                "α",
                self.alpha,
                "the paper uses 0.95; smaller values care more whether a copy is old than how old it is",
            ),
        ):
            if value is not None and not 0.0 < value <= MOST_WEIGHT:  # also refuses NaN
                raise UsageError(f"{name} must be positive and at most {MOST_WEIGHT:,.0f}, not {value:g}", hint=hint)
        if self.guided_share is None:
            return
        if not 0.0 <= self.guided_share <= 1.0:
            raise UsageError(
                f"the guided share must be between 0 and 1, not {self.guided_share:g}",
                hint="0 reads breadth-first only",
            )
        if order != "breadth-first":
            raise UsageError(
                f"first reads are in the order {order}, which has no share to change",
                hint="start the crawl with crawl.order = breadth-first",
            )
