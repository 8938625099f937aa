"""A prefix of an S3 bucket, as far as an archive needs it: write whole files, read ranges.

obstore does the work, with its own multipart uploads and retries. It is an optional dependency, so it is imported
here and nowhere else, and only when such a bucket is opened. Keys, roles and regions come from the usual AWS variables
and the instance's own role; no setting holds a secret.

An upload is complete when the server has the same bytes. With nearly all servers the ETag proves it: the MD5 of the
object, or of the MD5s of its parts. If the ETag is something else (encryption with a customer's key), the object is
read back.
"""

from __future__ import annotations

import hashlib
import threading
import uuid
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

from quadloom.errors import SettingsError, StoreError, StoreUnavailable
from quadloom.model.outcome import ArchiveRef
from quadloom.settings import Settings
from quadloom.settings.plain_http import check_plain_http

if TYPE_CHECKING:
    from obstore.store import S3Config

PART_BYTES = 8 * 1024 * 1024  # of a multipart upload; S3 allows 10,000 of them: files up to 80 GB
_NO_RANGES = "pages could be written and never read again; use a server that answers Range requests with status 206"
_HINT = "check the bucket, its endpoint and the AWS credentials; files wait in the warehouse until they are uploaded"


# What each kind of request needs to be allowed.
_RIGHTS = {
    "write": "s3:PutObject",
    "read": "s3:GetObject",
    "examine": "s3:GetObject",
    "list": "s3:ListBucket",
    "remove": "s3:DeleteObject",
}


class S3Address(msgspec.Struct, frozen=True, kw_only=True):
    """A bucket and a prefix in it. `endpoint`, `region`: empty = as in the AWS environment."""

    bucket: str
    prefix: str = ""
    endpoint: str = ""
    region: str = ""


def address_of(settings: Settings) -> S3Address:
    """The bucket in `[stores]`. Raises `SettingsError` for an address that is invalid, or not safe to use."""
    stores = settings.stores
    parts = urlsplit(stores.archive)
    if not parts.netloc or "@" in parts.netloc or ":" in parts.netloc or parts.query or parts.fragment:
        raise SettingsError(
            f"stores.archive = {stores.archive!r} is not a bucket",
            hint="write s3://bucket/prefix; see also archive_endpoint",
        )
    if stores.archive_endpoint:
        check_plain_http("stores.archive_endpoint", stores.archive_endpoint, settings.guard)
    return S3Address(
        bucket=parts.netloc,
        prefix=parts.path.strip("/"),
        endpoint=stores.archive_endpoint,
        region=stores.archive_region,
    )


class S3Bucket:
    """Safe for many threads. Every failure is a `StoreError`; only `read` and `size` raise `FileNotFoundError`.
    `patient`: requests that fail are repeated for minutes; otherwise once."""

    def __init__(self, address: S3Address, *, patient: bool = True) -> None:
        try:
            import obstore
            from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
            from obstore.store import S3Store
        except ImportError:
            raise SettingsError(
                "an archive on S3 needs the package obstore", hint="pip install 'quadloom[cluster]'"
            ) from None
        self._obstore = obstore
        self._errors: tuple[type[Exception], ...] = (BaseError, OSError)
        self._refusals: tuple[type[Exception], ...] = (PermissionDeniedError, UnauthenticatedError)
        self._name = f"s3://{address.bucket}/{address.prefix}"
        config: S3Config = {}
        if address.endpoint:
            config["endpoint"] = address.endpoint
        if address.region:
            config["region"] = address.region
        plain = address.endpoint.startswith("http://")
        self._store = S3Store(
            address.bucket,
            prefix=address.prefix or None,
            config=config,
            client_options={"allow_http": plain},
            retry_config=None if patient else {"max_retries": 1, "retry_timeout": timedelta(seconds=5)},
        )

    def probe(self) -> None:
        """Write an object, read a range of it, list it and remove it. Raises `StoreError` with the first thing that an
        archive needs and this bucket does not do."""
        key, data = f"quadloom-check/{uuid.uuid4().hex}", bytes(range(64))
        self.put(key, data)
        try:
            if self.read(key, 10, 20) != data[10:30]:
                raise StoreError(
                    f"{self._name}: a range of an object has other bytes than were written", hint=_NO_RANGES
                )
            if self.files("quadloom-check").get(key) != len(data):
                raise StoreError(
                    f"{self._name}: an object that was written is not listed", hint="the archive needs a full S3 server"
                )
        except StoreError as error:
            if "non-partial response" in error.message:
                raise StoreError(f"{self._name}: the server ignores ranges", hint=_NO_RANGES) from error
            raise
        finally:
            with suppress(StoreError):
                self.remove(key)
        if self.has(key):
            raise StoreError(
                f"{self._name}: an object cannot be removed", hint="allow s3:DeleteObject; `prune` and uploads need it"
            )

    def files(self, folder: str = "") -> dict[str, int]:
        """All objects (below a folder) in order of their names, with their sizes."""
        with self._translated("list it"):
            found = {
                str(item["path"]): int(item["size"])
                for batch in self._obstore.list(self._store, folder or None)
                for item in batch
            }
        return dict(sorted(found.items()))

    def read(self, key: str, offset: int, length: int) -> bytes:
        """A range; shorter, or empty, if the object ends before it."""
        try:
            with self._translated(f"read {key}", may_be_missing=True):
                return bytes(self._obstore.get_range(self._store, key, start=offset, length=length))
        except StoreError:
            if offset >= self.size(key):  # for S3 a range that begins after the end is an error
                return b""
            raise

    def size(self, key: str) -> int:
        with self._translated(f"examine {key}", may_be_missing=True):
            return int(self._obstore.head(self._store, key)["size"])

    def download(self, key: str, target: Path) -> None:
        with self._translated(f"read {key}"), target.open("wb") as file:
            for part in self._obstore.get(self._store, key).stream(PART_BYTES):
                file.write(part)

    def upload(self, path: Path, key: str) -> None:
        """Put a whole file, unless the object exists. Never changes an existing object."""
        if not self.has(key):
            with self._translated(f"write {key}"):
                self._obstore.put(self._store, key, path, chunk_size=PART_BYTES, max_concurrency=4)

    def put(self, key: str, data: bytes) -> None:
        """Put an object from memory, also over an existing one. The signature has its digest, which verifies it."""
        with self._translated(f"write {key}"):
            self._obstore.put(self._store, key, data)

    def verify(self, path: Path, key: str) -> None:
        """Raises `StoreError` unless object and file are equal byte for byte."""
        with self._translated(f"examine {key}"):
            found = self._obstore.head(self._store, key)
        same = found["size"] == path.stat().st_size
        if same and str(found["e_tag"]).strip('"') != _etag(path):
            same = self._digest(key) == _digest(path)
        if not same:
            raise StoreError(
                f"{self._name}: {key} differs from {path}",
                hint="another warehouse writes under the same name; give this one a stores.archive_writer of its own",
            )

    def remove(self, key: str) -> None:
        """A missing object is no error."""
        if self.has(key):
            with self._translated(f"remove {key}"):
                self._obstore.delete(self._store, key)

    def remove_all(self, keys: Sequence[str]) -> None:
        """Remove existing objects, a thousand with one request."""
        if keys:
            with self._translated(f"remove {keys[0]}"):
                self._obstore.delete(self._store, list(keys))

    def has(self, key: str) -> bool:
        try:
            self.size(key)
        except FileNotFoundError:
            return False
        return True

    def _digest(self, key: str) -> bytes:
        digest = hashlib.sha256()
        with self._translated(f"read {key}"):
            for part in self._obstore.get(self._store, key).stream(PART_BYTES):
                digest.update(part)
        return digest.digest()

    @contextmanager
    def _translated(self, doing: str, *, may_be_missing: bool = False) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            if may_be_missing and isinstance(error, FileNotFoundError):
                raise
            words = str(error).partition("\n")[0]  # the rest is for developers of obstore
            if isinstance(error, self._refusals) and "169.254.169.254" not in words:
                right = _RIGHTS.get(doing.partition(" ")[0], "reading and writing")
                raise StoreError(
                    f"{self._name}: the server does not allow to {doing}",
                    hint=f"check AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and allow {right} in this bucket",
                ) from error
            # Refusals have classes of their own; what is left is a server that does not answer, or answers 5xx.
            if "169.254.169.254" in words or "CredentialsProvider" in words or "credentials" in words.lower():
                raise StoreError(
                    f"{self._name}: there are no credentials for it",
                    hint="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run where a role gives them",
                ) from error
            if "NoSuchBucket" in str(error):
                bucket = self._name.removeprefix("s3://").partition("/")[0]
                raise StoreError(
                    f"{self._name}: there is no bucket {bucket}", hint="create it, or correct stores.archive"
                ) from error
            kind = StoreUnavailable if type(error) is self._obstore.exceptions.GenericError else StoreError
            raise kind(f"{self._name}: cannot {doing}: {words}", hint=_HINT) from error


class RecordCache:
    """Records that were read from the bucket, up to a number of bytes; the least recently used are dropped first. Safe
    for many threads."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._size = 0
        self._records: OrderedDict[ArchiveRef, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, ref: ArchiveRef) -> bytes | None:
        with self._lock:
            data = self._records.get(ref)
            if data is not None:
                self._records.move_to_end(ref)
            return data

    def put(self, ref: ArchiveRef, data: bytes) -> None:
        with self._lock:
            if ref not in self._records:
                self._size += len(data)
            self._records[ref] = data
            while self._size > self._max_bytes:
                _, dropped = self._records.popitem(last=False)
                self._size -= len(dropped)

    def forget(self, file: str) -> None:
        with self._lock:
            for ref in [ref for ref in self._records if ref.file == file]:
                self._size -= len(self._records.pop(ref))


def _etag(path: Path) -> str:
    """The ETag of an object that was put in parts of `PART_BYTES`, or at once if it is not longer than one part."""
    with path.open("rb") as file:
        parts = [_md5(part) for part in iter(lambda: file.read(PART_BYTES), b"")]
    if len(parts) > 1:
        return f"{_md5(b''.join(parts)).hex()}-{len(parts)}"
    return (parts[0] if parts else _md5(b"")).hex()


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
