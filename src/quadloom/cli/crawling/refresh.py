"""`quadloom refresh` and `quadloom freshness`: read known pages again now; how a crawl divides its bandwidth."""

from __future__ import annotations

import time

from quadloom.cli.session import session
from quadloom.crawl.control import ask
from quadloom.errors import UsageError
from quadloom.scheduling.objectives import Policy
from quadloom.settings import seconds
from quadloom.warehouse import Warehouse


def refresh(*urls: str, site: str = "", older_than: str = "") -> None:
    """Ask for pages again; a running crawl reads them next, otherwise the next `quadloom crawl` does.

    Parameters
    ----------
    urls
        pages to read again, known or not
    site
        all pages of this site or host
    older_than
        all pages last read longer ago than this: 7d, 12h, 30m
    """
    s = session()
    if not urls and not site and not older_than:
        raise UsageError("nothing to refresh was named", hint="give URLs, --site example.org or --older-than 7d")
    before = time.time() - _span(older_than) if older_than else None
    answer = ask(s.warehouse, "refresh", urls=list(urls), site=site, read_before=before)
    if answer is None:
        with Warehouse.open(s.warehouse, settings=s.settings) as warehouse:
            answer = warehouse.requests.refresh(urls, site=site, read_before=before)
    if s.json:
        s.emit({"requested": answer})
    else:
        s.write(f"{answer} requested")


def _span(text: str) -> float:
    try:
        return seconds(text)
    except ValueError:
        raise UsageError(f"not a length of time: {text!r}", hint="write 7d, 12h, 30m or 45s") from None


def freshness(
    *,
    bandwidth: float | None = None,
    suspect_share: float | None = None,
    discovery_share: float | None = None,
    policy: Policy | None = None,
    alpha: float | None = None,
    chi: float | None = None,
) -> None:
    """Show or change how a running crawl divides its bandwidth and weighs pages; lasts until it ends.

    Parameters
    ----------
    bandwidth
        pages per second, first reads and refresh together
    suspect_share
        σ_X: share for first reads of suspected data
    discovery_share
        σ_H: share for first reads of other pages; the rest refreshes
    policy
        what the refresh schedule optimises
    alpha
        α of the policy xyleme: how much more a copy costs that missed many changes than one that missed a single one
    chi
        χ: what a page of structured data weighs on average, beside 1 for an ordinary page
    """
    s = session()
    if bandwidth is not None and bandwidth <= 0.0:
        raise UsageError("the bandwidth must be positive", hint="`quadloom pause` lets a crawl rest")
    answer = ask(
        s.warehouse,
        "freshness",
        bandwidth=bandwidth,
        suspect_share=suspect_share,
        discovery_share=discovery_share,
        policy=policy,
        alpha=alpha,
        chi=chi,
    )
    if not isinstance(answer, dict):
        raise UsageError(
            f"no crawl is running on {s.warehouse}", hint="[freshness] in quadloom.toml has the values of the next one"
        )
    if s.json:
        s.emit(answer)
    else:
        s.table(["what", "value"], [(name, value) for name, value in answer.items()])
