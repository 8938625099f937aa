"""Requests of people to all workers of a cluster, or to one of them, from any machine.

They are the control requests of a single crawl (`quadloom.crawling.run.control`), sent through the shared database
instead of a socket. What is asked of all workers and describes how they work (paused or not, shares of the bandwidth,
strategies) also holds for workers that join later, until another such request changes it."""

from __future__ import annotations

import time
from collections.abc import Mapping

import msgspec

from quadloom.crawling.cluster.view import ClusterView, cluster_view
from quadloom.crawling.run.control import ControlReply, ControlRequest
from quadloom.errors import QuadloomError, UsageError
from quadloom.model.event import Event
from quadloom.model.wire import Value
from quadloom.settings import Settings
from quadloom.stores.postgres.bus import numbered_events
from quadloom.stores.postgres.database import PostgresDatabase
from quadloom.stores.postgres.state import database_url
from quadloom.stores.postgres.workers import WorkerRequests, worker_rows
from quadloom.stores.protocols.state import WorkerRow

# What holds for later workers, and under which word: `resume` takes the place of `pause`.
STANDING = {"pause": "paused", "resume": "paused", "freshness": "freshness", "strategies": "strategies"}
ANSWER_SECONDS = 20.0
_POLL = 0.1


class WorkerReply(msgspec.Struct, frozen=True):
    """What one worker answered. `error`: why it refused, or that it did not answer."""

    worker: str
    answer: object = None
    error: str = ""
    hint: str = ""


def is_cluster(settings: Settings) -> bool:
    """Whether several machines may share this warehouse."""
    return settings.stores.frontier.startswith("postgresql:")


class Steering:
    """Use as a context manager. Needs no directory and no lock."""

    def __init__(self, settings: Settings) -> None:
        self._database = PostgresDatabase(database_url(settings), writable=True, patience=5.0)
        self._requests = WorkerRequests(self._database)
        if self._database.schema_version() == 0:
            name = self._database.name
            self._database.close()
            raise UsageError(
                f"there is no warehouse at {name} yet", hint="start a worker on each machine: `quadloom worker`"
            )

    def __enter__(self) -> Steering:
        return self

    def __exit__(self, *_: object) -> None:
        self._database.close()

    def view(self) -> ClusterView:
        return cluster_view(worker_rows(self._database))

    def send(
        self, verb: str, arguments: Mapping[str, Value], *, worker: str = "", seconds: float = ANSWER_SECONDS
    ) -> list[WorkerReply]:
        """Ask one worker, or all (empty name), and wait for the replies. A standing request is stored even if no worker
        runs. Raises `UsageError` if the named worker is not there."""
        view = self.view()
        if worker and worker not in {one.name for one in view.alive}:
            names = ", ".join(one.name for one in view.alive) or "none"
            raise UsageError(f"no worker {worker!r} is alive", hint=f"workers now: {names}")
        standing = STANDING.get(verb, "") if not worker and is_change(verb, arguments) else ""
        request = ControlRequest(verb, self._with_earlier(verb, arguments) if standing else dict(arguments))
        sent = self._requests.send(msgspec.json.encode(request), target=worker, standing=standing)
        replies: dict[str, bytes] = {}
        deadline = time.monotonic() + seconds
        while sent.workers and time.monotonic() < deadline:
            replies = self._requests.answers(sent.id)
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
        """Changes of freshness add up: the one that stands has all of them."""
        earlier = self._requests.standing(STANDING[verb]) if verb == "freshness" else None
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


class ClusterReader:
    """What workers say and what happens, read over one connection. Raises `StoreError` before the first worker."""

    def __init__(self, settings: Settings) -> None:
        self._database = PostgresDatabase.read_only(database_url(settings))

    def workers(self) -> list[WorkerRow]:
        return worker_rows(self._database)

    def events(self, after: int, limit: int, *, settled: bool = True) -> list[Event]:
        """The newest events of all workers with a larger id, oldest first. `settled`: including one for each page."""
        return numbered_events(self._database, after, limit, settled=settled)

    def close(self) -> None:
        self._database.close()
