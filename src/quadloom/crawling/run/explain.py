"""Why a URL is in its state, and when it is read next: every number with its rule, for `quadloom why`.

Each part of the crawl explains what it decides: scope, robots.txt, frontier, catalog, refresh schedule, ranking.
"""

from __future__ import annotations

import msgspec

from quadloom.errors import NothingFound
from quadloom.fetching.robots import RobotsRow, path_of, verdict
from quadloom.model.outcome import PageRow
from quadloom.model.timestamps import readable_time
from quadloom.model.url import Url
from quadloom.planning.policy.facts import schedule_facts
from quadloom.planning.policy.planner import Planner
from quadloom.planning.policy.suspects import DATA_KINDS
from quadloom.planning.ranking.page_ranks import MOVED, PageRank
from quadloom.planning.refresh.state import Schedule
from quadloom.planning.scope import KEPT_DEPTH
from quadloom.settings import Settings
from quadloom.settings.sites import rules_for
from quadloom.stores.protocols.catalog import Catalog
from quadloom.stores.protocols.frontier import Explanation, Frontier, HostRow, ScopeRules


class Reason(msgspec.Struct, frozen=True):
    """One fact: `value` of `what`, decided by `part` of the crawl under `rule`."""

    part: str
    what: str
    value: str
    rule: str


class Why(msgspec.Struct, frozen=True):
    """All reasons for one URL; `summary` is the schedule in one sentence, empty if the URL was never visited."""

    url: str
    key: str
    state: str
    reasons: tuple[Reason, ...]
    summary: str = ""


def why(
    text: str,
    *,
    frontier: Frontier,
    catalog: Catalog,
    scope: ScopeRules,
    schedule: Schedule,
    settings: Settings,
    now: float,
    rank: PageRank | None = None,
) -> Why:
    """All reasons for one URL. Raises `NothingFound` if it was never found and the scope does not exclude it."""
    url = Url.parse(text)
    explanation = frontier.explain(url.key, now)
    row = catalog.page(url.fingerprint)
    reasons = [_scope_reason(scope, url, row)]
    reasons += _robots_reasons(frontier.hosts.get(url.host), url, settings)
    if explanation is None and row is None:
        if reasons[0].value == "inside":
            raise NothingFound(
                f"{url.href} was never found: no page read so far has a link to it that may be followed"
                " (links with rel=nofollow, and those of nofollow pages, are not)",
                hint=f"`quadloom seeds add {url.href}` queues it",
            )
        return Why(url.href, url.key, "unknown", tuple(reasons))
    state = explanation.state if explanation is not None else "unknown"
    reasons += [Reason("frontier", *line) for line in (explanation.lines if explanation is not None else ())]
    if explanation is not None:
        reasons += _discovery_reasons(url, explanation, catalog, schedule)
    if row is not None:
        reasons += _page_reasons(row)
        reasons += _schedule_reasons(row, schedule.planner)
    reasons += _ranking_reasons(rank, settings, schedule.data_weight)
    summary = _summary(state, reasons, row) if row is not None else ""
    return Why(url.href, url.key, state, tuple(reasons), summary)


def _summary(state: str, reasons: list[Reason], row: PageRow) -> str:
    """How often the page is read, when next, and how often it changed."""
    found = {reason.what: reason.value for reason in reasons if reason.part == "schedule"}
    parts = [f"read every {found['period']}"] if "period" in found else []
    if found.get("next visit", "none") != "none":
        parts.append(f"next on {found['next visit']}")
    repeats = max(0, row.visits - 1)
    changes = f"changed {row.changes} of {repeats} times" if repeats else "visited once so far"
    text = "; ".join([*(parts or [f"its state is {state}"]), changes])
    return text[0].upper() + text[1:] + "."


def _scope_reason(scope: ScopeRules, url: Url, row: PageRow | None) -> Reason:
    refusal = scope.verdict(url.href, url.host, row.depth if row is not None else 0)
    return Reason(
        "scope", "verdict", "inside" if refusal is None else "outside", refusal or "reach, patterns and depth allow it"
    )


def _robots_reasons(host: HostRow | None, url: Url, settings: Settings) -> list[Reason]:
    if rules_for(url.host, settings).robots == "ignore":
        return [Reason("robots", "verdict", "not asked", "politeness.robots, or that of a [[site]], is ignore")]
    stored = RobotsRow.decode(host.robots) if host is not None and host.robots else None
    if stored is None:
        return [Reason("robots", "verdict", "not known yet", "robots.txt is read before the first page of a host")]
    age = Reason(
        "robots",
        "robots.txt",
        stored.status,
        f"read {readable_time(stored.fetched_at)}, valid until {readable_time(stored.expires)}",
    )
    if stored.status == "unavailable":
        return [
            age,
            Reason("robots", "verdict", "disallowed", stored.reason or "an unavailable robots.txt forbids all"),
        ]
    rule = verdict(stored.robots.rules, path_of(url.href))
    if rule is None:
        return [age, Reason("robots", "verdict", "allowed", "the longest matching rule allows it, or none matches")]
    return [age, Reason("robots", "verdict", "disallowed", f"Disallow: {rule.pattern}")]


def _discovery_reasons(url: Url, found: Explanation, catalog: Catalog, schedule: Schedule) -> list[Reason]:
    """Where the URL was first found, how likely it is structured data, and its share of a crawl without an end."""
    source = catalog.page(found.via) if found.via else None
    from_data = source is not None and source.kind in DATA_KINDS
    suspicion = schedule.suspects.suspicion(url.href, url.site, found.kind, from_data)
    is_suspect = suspicion.probability > 0.5
    share = schedule.shares.suspects if is_suspect else schedule.shares.pages
    setting = "suspect_share" if is_suspect else "discovery_share"
    off = "no first reads by a crawl without an end, but of seeds" if not share else "of a crawl without an end"
    witnesses = ", ".join(f"{name} {probability:.2g}" for name, probability in suspicion.witnesses)
    return [
        Reason(
            "discovery",
            "first found",
            source.href if source else "as a seed, a request or in a listing",
            f"through a link of kind {found.kind}",
        ),
        Reason(
            "discovery",
            "suspicion",
            f"{suspicion.probability:.2g}",
            f"above 0.5 it is first read in σ_X's share, for structured data: {witnesses}, learned from first reads",
        ),
        Reason("discovery", "share of first reads", f"{share:g}", f"{off}; freshness.{setting}"),
    ]


def _page_reasons(row: PageRow) -> list[Reason]:
    changed = readable_time(row.changed_at) if row.changed_at else "none"
    kind = f"{row.kind or 'unknown kind'} {row.media_type}".strip()
    return [
        Reason(
            "page", "last visit", readable_time(row.fetched_at), f"{row.outcome}: {row.reason or f'HTTP {row.status}'}"
        ),
        Reason("page", "visits", str(row.visits), "all that were made, whatever their outcome"),
        Reason("page", "last change", changed, "graph or main text differed"),
        Reason("page", "found through", row.link_kind or "unknown", _distance(row.depth)),
        Reason("page", "holds", f"{row.quads} quads, {row.links} links", kind),
    ]


def _distance(depth: int) -> str:
    return "chosen by a topical crawl" if depth == KEPT_DEPTH else f"{depth} links from a seed"


def _schedule_reasons(row: PageRow, planner: Planner) -> list[Reason]:
    if not row.schedule:
        return [Reason("schedule", "next visit", "none", "never read successfully, so there is nothing to refresh")]
    return [Reason("schedule", *fact) for fact in schedule_facts(planner, row)]


def _ranking_reasons(rank: PageRank | None, settings: Settings, data_weight: float) -> list[Reason]:
    rules = settings.freshness
    update = f"updated when it moves by {MOVED:.0%}; ranked every {rules.importance_every}"
    if rank is None:
        return [Reason("ranking", "weight in the last ranking", "not ranked yet", update)]
    importance = f"{rank.importance:.4g} times the mean of all pages"
    usefulness = f"{rank.usefulness:.4g} times the mean of ordinary pages"
    return [
        Reason("ranking", "importance", importance, f"fixpoint over links, damping {rules.damping:g}"),
        Reason(
            "ranking",
            "usefulness",
            usefulness,
            f"importance of the structured data it leads to ({rules.usefulness} over links)",
        ),
        Reason(
            "ranking",
            "weight in the last ranking",
            f"{rank.weight:.4g}",
            f"importance of data (mean χ = {data_weight:g}), usefulness of others (mean 1), promotion; {update}",
        ),
    ]
