"""Why a request brought no page: libcurl's errors and our own limits, in the words of `FailureKind`.

Each limit has one kind and one finding code, `fetch-<kind>`, and the message names the setting that drew the line.
"""

from __future__ import annotations

import pycurl

from quadloom.model.finding import Finding, Severity
from quadloom.model.page import Failure, FailureKind, Hop
from quadloom.settings import LimitSettings

# Asking again may help with these; a bomb, a refused address or a wrong certificate stays what it is.
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
    "tls": "certificates are always verified; guard.authorities names a file of authorities to trust",
}
_QUIET: frozenset[FailureKind] = frozenset({"unwanted", "robots", "scope"})  # as it should be, not a defect

_TLS_CODES = frozenset(
    getattr(pycurl, name)
    for name in (
        "E_SSL_CONNECT_ERROR", "E_PEER_FAILED_VERIFICATION", "E_SSL_CACERT", "E_SSL_CACERT_BADFILE",
        "E_SSL_CERTPROBLEM", "E_SSL_CIPHER", "E_SSL_ISSUER_ERROR", "E_SSL_INVALIDCERTSTATUS",
    )
    if hasattr(pycurl, name)
)  # fmt: skip
_TOO_LARGE = 100  # CURLE_TOO_LARGE: libcurl's own ceiling on header bytes, 300 KiB

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


def of_curl(code: int, text: str, limits: LimitSettings) -> tuple[FailureKind, str]:
    """Kind and message of a libcurl error."""
    if code == pycurl.E_OPERATION_TIMEDOUT:
        if "too slow" in text:
            return "too-slow", (
                f"less than {limits.low_speed_bytes} bytes/s for {limits.low_speed_seconds:g} s (limits.low_speed_*)"
            )
        if "onnection time" in text or "SSL connection timeout" in text:
            return "connect", f"no connection within {limits.connect_seconds:g} s (limits.connect_seconds)"
        return "timeout", f"not finished within {limits.total_seconds:g} s (limits.total_seconds)"
    if code in _TLS_CODES:
        return "tls", text or "TLS failed"
    if code in (pycurl.E_COULDNT_CONNECT, pycurl.E_SEND_ERROR):
        return "connect", text or "no connection"
    if code == pycurl.E_COULDNT_RESOLVE_HOST:
        return "dns", text or "name not found"
    if code == _TOO_LARGE or ("header" in text.lower() and "large" in text.lower()):
        return "headers", f"response headers without end: more than {limits.header_bytes} bytes (limits.header_bytes)"
    return "protocol", text or f"broken answer (libcurl error {code})"
