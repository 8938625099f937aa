"""Failures of requests, with their findings.

Each limit has one `FailureKind` and one finding code, `fetch-<kind>`, and the message names the setting that sets it.
"""

from __future__ import annotations

from quadloom.model.finding import Finding, Severity
from quadloom.model.page import Failure, FailureKind, Hop

# A second request may succeed after these; a bomb, a refused address or a wrong certificate does not change.
_TRANSIENT: frozenset[FailureKind] = frozenset({"dns", "connect", "timeout", "too-slow", "protocol", "internal"})

_ADVICE: dict[FailureKind, str] = {
    "bomb": "if the site is trusted, raise limits.decode_ratio",
    "too-large": "raise limits.large_bytes to read it",
    "too-slow": "see limits.low_speed_bytes and limits.low_speed_seconds",
    "timeout": "see limits.total_seconds",
    "headers": "see limits.header_bytes and limits.header_count",
    "redirects": "see limits.redirects",
    "dns": "see limits.dns_seconds; guard.hosts can name an address",
    "guard": "addresses of your own network are opened by guard.allow, ports by guard.ports",
    "not-archived": "a replay answers only what the archive holds (crawl.transport)",
    "tls": "certificates are always verified; guard.authorities names a file of authorities to trust",
}
_QUIET: frozenset[FailureKind] = frozenset({"unwanted", "robots", "scope", "not-archived"})  # as intended, not a defect

_RETRY_STATUS = frozenset({408, 425, 429, 500, 502, 503, 504})


def make(
    url: str,
    kind: FailureKind,
    message: str,
    *,
    fetched_at: float,
    seconds: float = 0.0,
    transient: bool | None = None,
    status: int = 0,
    retry_after: float | None = None,
    address: str = "",
    hops: tuple[Hop, ...] = (),
    headers: tuple[tuple[str, str], ...] = (),
) -> Failure:
    """A failure with its finding."""
    severity: Severity = "info" if kind in _QUIET else "warning"
    finding = Finding(f"fetch-{kind}", message, severity, "fetch", advice=_ADVICE.get(kind, ""))
    return Failure(
        url=url,
        kind=kind,
        message=message,
        transient=kind in _TRANSIENT if transient is None else transient,
        fetched_at=fetched_at,
        seconds=seconds,
        status=status,
        retry_after=retry_after,
        address=address,
        findings=(finding,),
        hops=hops,
        headers=headers,
    )


def status_is_transient(status: int) -> bool:
    """Whether the server itself says that another time may be better."""
    return status in _RETRY_STATUS
