"""What passes between a page and the programs of others that read it: services and commands."""

from __future__ import annotations

from typing import NamedTuple

import msgspec


class ServiceReply(NamedTuple):
    """What a service answered."""

    status: int
    content_type: str
    body: bytes


class ServiceRequest(msgspec.Struct, frozen=True, array_like=True):
    """That a service should read a document. `service`: its place in the settings; `url`: of the document."""

    service: int
    media_type: str
    url: str


class ServiceAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer of a service, or in `reason` why there is none."""

    service: int
    reply: ServiceReply | None
    reason: str = ""


class InstanceLoad(msgspec.Struct, frozen=True):
    """One instance of a service at one moment, for `status`, the monitor and metrics.

    `mean_seconds` is a moving mean of its answers. `waiting`: pages that wait for any instance of its service.
    `resting_seconds`: how long it still gets no requests, because it failed.
    """

    url: str
    requests: int = 0
    in_progress: int = 0
    parallel: int = 0
    mean_seconds: float = 0.0
    failures: int = 0
    waiting: int = 0
    resting_seconds: float = 0.0
