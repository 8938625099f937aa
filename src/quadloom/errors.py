"""Every exception Quadloom raises on purpose, in one tree.

::

    QuadloomError                 base; carries a hint and an exit code
    ├── UsageError                a command or call with wrong arguments         exit 2
    │   ├── InputError            a number out of range (also a ValueError)      exit 2
    │   └── UrlError              text that is not an http(s) URL                exit 2
    ├── SettingsError             configuration that cannot be used              exit 3
    ├── NothingFound              the answer is empty                            exit 4
    ├── StoreError                a store cannot do what its protocol promises   exit 6
    │   ├── WarehouseLocked       another process owns the warehouse             exit 7
    │   ├── DiskFull              no space left; nothing acknowledged was lost   exit 6
    │   ├── StoreUnavailable      a server is unreachable; retrying may help     exit 6
    │   │   └── ServerFull        … its disk is full (also a DiskFull)           exit 6
    │   ├── ShardsLost            another worker owns these shards now           exit 6
    │   └── ArchiveDamaged        an archive record cannot be read back          exit 6
    ├── QueryError                a query was refused, failed or was ended       exit 1
    │   ├── QueryRefused          forbidden, or over a static limit              exit 2
    │   ├── QuerySyntaxError      does not parse; has line and column            exit 2
    │   └── QueryLimit            ended by its time, memory, row or byte limit   exit 5
    ├── ChildFailed               a child process cannot start or stay alive     exit 8
    ├── FetchError                one request failed; `kind` says how            exit 1
    └── SyntaxInvalid             a document breaks the rules of its syntax      exit 1

Defects of web pages are not exceptions: they become `Finding`s. `FetchError` and `SyntaxInvalid` never leave
their phase; the pipeline turns them into an `Outcome` and a `Finding`.
"""

from __future__ import annotations

from collections.abc import Callable


class QuadloomError(Exception):
    """An error that a user can understand. `message` says what happened, `hint` what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(QuadloomError):
    exit_code = 2


class InputError(UsageError, ValueError):
    """An argument of a public function is out of range: not finite, negative or of the wrong shape."""


class UrlError(UsageError):
    """The text is not a URL that can be visited."""


class SettingsError(QuadloomError):
    exit_code = 3


class NothingFound(QuadloomError):
    exit_code = 4


class StoreError(QuadloomError):
    exit_code = 6


class WarehouseLocked(StoreError):
    exit_code = 7


class DiskFull(StoreError):
    pass


class StoreUnavailable(StoreError):
    """A server is unreachable or ended the transaction. Nothing was written; the call may be repeated."""


class ServerFull(StoreUnavailable, DiskFull):
    """The disk of a server is full. `waits`: whether the process that wants to write goes on trying."""

    def __init__(self, message: str, *, hint: str = "", waits: Callable[[], bool] = lambda: False) -> None:
        super().__init__(message, hint=hint)
        self.waits = waits


class ShardsLost(StoreError):
    """Another worker has taken over these shards; writes for them must be dropped."""

    def __init__(self, message: str, *, shards: frozenset[int], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.shards = shards


class ArchiveDamaged(StoreError):
    pass


class ChildFailed(QuadloomError):
    """A child process was started again and again, and never did anything. What was acknowledged is safe."""

    exit_code = 8


class QueryError(QuadloomError):
    pass


class QueryRefused(QueryError):
    exit_code = 2


class QuerySyntaxError(QueryError):
    exit_code = 2

    def __init__(self, message: str, *, hint: str = "", line: int = 0, column: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.line = line
        self.column = column


class QueryLimit(QueryError):
    exit_code = 5


class FetchError(QuadloomError):
    """A request that returned no page.

    `kind` is one of `quadloom.model.page.FailureKind`; `transient` says whether a later retry can help;
    `retry_after` is the server's Retry-After in seconds, if it sent one.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        hint: str = "",
        transient: bool = True,
        retry_after: float | None = None,
        status: int = 0,
    ) -> None:
        super().__init__(message, hint=hint)
        self.kind = kind
        self.transient = transient
        self.retry_after = retry_after
        self.status = status


class SyntaxInvalid(QuadloomError):
    """A document, or one block of it, is not valid in its syntax. `line` and `column` count from 1; 0 = unknown."""

    def __init__(self, message: str, *, code: str = "invalid", line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.line = line
        self.column = column
