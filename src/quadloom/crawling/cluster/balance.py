"""Who should own which shards: a fair share of the work, decided by each worker for itself.

The work of a shard is what its hosts can serve within a minute under politeness; a queue of a million URLs of one
slow host is little work. Every shard weighs a little more than its work, so that shards without any are shared evenly,
too. The fair share is the weight of all shards divided by the number of workers.

A worker with more than its share gives back shards, the heaviest first, but never falls below the share, so a shard
that is heavier than that stays where it is and the others leave it. A worker with less takes free ones. All workers see
the same table, and together they want exactly what there is; what they see late is corrected at the next heartbeat.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from quadloom.stores.protocols.cluster import ShardLoad

_SLACK = 0.15  # of the fair share: less than that is not worth moving a shard
_EVEN = 0.1  # part of all weight that every shard has the same of


class BalancePlan(NamedTuple):
    """What one worker should do. `hot`: its shards that alone are more than a fair share."""

    give: list[int]
    take: list[int]
    hot: list[int]


def plan(loads: Sequence[ShardLoad], owner: str, workers: int, draining: Collection[int] = ()) -> BalancePlan:
    """For the worker `owner`, one of `workers`. `draining`: shards that it gives back already."""
    work = sum(load.work for load in loads)
    even = _EVEN * work / len(loads) if work > 0.0 else 1.0
    weights = {load.shard: load.work + even for load in loads}
    fair = sum(weights.values()) / workers
    wanted = {load.shard for load in loads if load.wanted_by not in ("", owner)}
    mine = [load.shard for load in loads if load.owner == owner and load.shard not in draining]
    give = [shard for shard in mine if shard in wanted]
    stay = sorted((shard for shard in mine if shard not in wanted), key=lambda shard: (-weights[shard], shard))
    held = sum(weights[shard] for shard in stay)
    hot = [shard for shard in stay if workers > 1 and weights[shard] > (1.0 + _SLACK) * fair]
    if held > (1.0 + _SLACK) * fair:
        for shard in stay:
            if held - weights[shard] >= fair:
                give.append(shard)
                held -= weights[shard]
        return BalancePlan(give, [], hot)
    free = [load.shard for load in loads if not load.owner and load.shard not in wanted]
    take = []
    for shard in sorted(free, key=lambda shard: (-weights[shard], shard)):
        if held + weights[shard] <= fair * 1.000001:
            take.append(shard)
            held += weights[shard]
    if not take and free and _has_least(loads, weights, owner, workers):
        take = [max(free, key=lambda shard: weights[shard])]  # no shard may be too heavy for everybody
    return BalancePlan(give, take, hot)


def wanted_part(loads: Sequence[ShardLoad], owner: str) -> float:
    """This worker's part of what all workers could read now. Those without a queue keep a little, for pages that become
    due before the next heartbeat."""
    held = [load for load in loads if load.owner]
    work = sum(load.work for load in held)
    mine = [load for load in held if load.owner == owner]
    owned = len(mine) / max(1, len(held))
    return owned if work <= 0.0 else _EVEN * owned + (1.0 - _EVEN) * sum(load.work for load in mine) / work


def _has_least(loads: Sequence[ShardLoad], weights: dict[int, float], owner: str, workers: int) -> bool:
    """Whether nobody owns less than this worker; of several, the first by name."""
    held: dict[str, float] = {}
    for load in loads:
        if load.owner:
            held[load.owner] = held.get(load.owner, 0.0) + weights[load.shard]
    if owner not in held:
        return True
    return len(held) >= workers and min(held, key=lambda name: (held[name], name)) == owner
