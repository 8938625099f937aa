"""Requests of people to all workers of a cluster, or to one of them, from any machine.

They are the control requests of a single crawl (`quadloom.crawling.run.control`), sent through the shared database
instead of a socket. A request to all workers that says how they work (paused or not, shares of the bandwidth,
strategies) also holds for workers that join later, until another such request changes it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from quadloom.crawling.cluster.view import ClusterView, cluster_view
from quadloom.crawling.run.control import ControlReply, ControlRequest
from quadloom.errors import QuadloomError, UsageError
from quadloom.model.wire import Value
from quadloom.settings import Settings
from quadloom.stores.backends import open_cluster

# Requests to all workers that later ones get too, with the keys under which they are retained: `resume` replaces
# `pause`.
RETAINED = {"pause": "paused", "resume": "paused", "freshness": "freshness", "strategies": "strategies"}
ANSWER_SECONDS = 20.0
_POLL = 0.1


class WorkerReply(msgspec.Struct, frozen=True):
    """What one worker answered. `error`: why it refused, or that it did not answer."""

    worker: str
    answer: object = None
    error: str = ""
    hint: str = ""


class Steering:
    """Use as a context manager. Needs no directory and no lock."""

    def __init__(self, settings: Settings) -> None:
        self._cluster = open_cluster(settings, writable=True)

    def __enter__(self) -> Steering:
        return self

    def __exit__(self, *_: object) -> None:
        self._cluster.close()

    def view(self) -> ClusterView:
        return cluster_view(self._cluster.workers())

    def send(
        self, verb: str, arguments: Mapping[str, Value], *, worker: str = "", seconds: float = ANSWER_SECONDS
    ) -> list[WorkerReply]:
        """Ask one worker, or all (empty name), and wait for the replies. A request that later workers get too is stored
        even if no worker runs. Raises `UsageError` if the named worker is not alive."""
        view = self.view()
        if worker and worker not in {one.name for one in view.alive}:
            names = ", ".join(one.name for one in view.alive) or "none"
            raise UsageError(f"no worker {worker!r} is alive", hint=f"workers now: {names}")
        retain = RETAINED.get(verb, "") if not worker and is_change(verb, arguments) else ""
        request = ControlRequest(verb, self._with_earlier(verb, arguments) if retain else dict(arguments))
        sent = self._cluster.send(msgspec.json.encode(request), worker=worker, retain=retain)
        replies: dict[str, bytes] = {}
        deadline = time.monotonic() + seconds
        while sent.workers and time.monotonic() < deadline:
            replies = self._cluster.answers(sent.id)
            if replies.keys() >= set(sent.workers):
                break
            time.sleep(_POLL)
        return [_reply(name, replies.get(name)) for name in sorted({*sent.workers, *replies})]

    def ask_one(self, verb: str, arguments: Mapping[str, Value]) -> Value | None:
        """What any worker can do for all, because it is about shared tables. None = no worker is alive. Raises
        `QuadloomError` if it refuses."""
        for worker in self.view().alive:
            if "fetch" in worker.phases:
                (reply,) = self.send(verb, arguments, worker=worker.name)
                if reply.error:
                    raise QuadloomError(reply.error, hint=reply.hint)
                return reply.answer if reply.answer is not None else True  # type: ignore[return-value]  # JSON
        return None

    def _with_earlier(self, verb: str, arguments: Mapping[str, Value]) -> dict[str, object]:
        """Changes of freshness add up: the retained request has all of them."""
        earlier = self._cluster.retained(RETAINED[verb]) if verb == "freshness" else None
        known = msgspec.json.decode(earlier, type=ControlRequest).arguments if earlier is not None else {}
        return {**known, **{name: value for name, value in arguments.items() if value is not None}}


def is_change(verb: str, arguments: Mapping[str, Value]) -> bool:
    """`freshness` and `strategies` without values only ask."""
    return verb in ("pause", "resume") or any(value is not None and value is not False for value in arguments.values())


def _reply(worker: str, record: bytes | None) -> WorkerReply:
    if record is None:
        return WorkerReply(worker, error="did not answer in time", hint="`quadloom status` shows whether it is alive")
    reply = msgspec.json.decode(record, type=ControlReply)
    return WorkerReply(worker, reply.data, "" if reply.ok else reply.error, reply.hint)
