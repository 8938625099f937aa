"""Errors as clients see them: one shape for every route, `{ok: false, status, error, hint}`.

A browser that asks for a page gets the same four things as a page. `status_of` is the one place where the tree of
`quadloom.errors` meets HTTP.
"""

from __future__ import annotations

import msgspec

from quadloom.errors import (
    DiskFull,
    NothingFound,
    QuadloomError,
    QueryLimit,
    QueryRefused,
    QuerySyntaxError,
    StoreError,
    UsageError,
)


class ErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """What the client gets. `hint` is never empty: it says what to do next."""

    ok: bool = False
    status: int
    error: str
    hint: str
    line: int | None = None
    column: int | None = None

    def encode(self) -> bytes:
        shape = {"ok": self.ok, "status": self.status, "error": self.error, "hint": self.hint}
        if self.line:
            shape |= {"line": self.line, "column": self.column or 0}
        return msgspec.json.encode(shape)


class HttpError(QuadloomError):
    """A request that gets an error instead of an answer; handlers raise it, `app.py` turns it into a response."""

    def __init__(self, status: int, message: str, *, hint: str = "", headers: dict[str, str] | None = None) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.headers = headers or {}


_HINTS = {
    400: "see /openapi.json for the parameters of this address",
    404: "the address is misspelt, or what it showed is gone; programs find all addresses in /openapi.json",
    405: "the Allow header lists the methods that this address takes",
    406: "accept one of the media types in /openapi.json",
    500: "this is a bug in Quadloom; the server's log has the details",
}
_STATUSES: tuple[tuple[type[QuadloomError], int], ...] = (
    (NothingFound, 404),
    (QuerySyntaxError, 400),
    (QueryRefused, 400),
    (QueryLimit, 503),
    (UsageError, 400),
    (DiskFull, 503),
    (StoreError, 503),
)


def status_of(error: QuadloomError) -> int:
    if isinstance(error, HttpError):
        return error.status
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def describe_error(error: QuadloomError) -> tuple[ErrorBody, dict[str, str]]:
    """The body of the response, and its headers."""
    status = status_of(error)
    headers = dict(error.headers) if isinstance(error, HttpError) else {}
    if status in (429, 503):
        headers.setdefault("Retry-After", "5")
    place = (error.line, error.column) if isinstance(error, QuerySyntaxError) else (None, None)
    hint = error.hint or _HINTS.get(status, "see /openapi.json")
    return ErrorBody(status=status, error=error.message, hint=hint, line=place[0], column=place[1]), headers


def error_body(status: int, message: str, hint: str = "") -> ErrorBody:
    return ErrorBody(status=status, error=message, hint=hint or _HINTS.get(status, "see /openapi.json"))
