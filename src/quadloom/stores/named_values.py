"""The named values of a warehouse: small things in the catalog that must survive, such as seeds, contact and sums.

`REGISTRY` lists all of them. A module that owns a value declares it with its type and uses it over any catalog:

    SEEDS = NamedValue("seeds", list[str])
    SEEDS.put(catalog, ["https://example.org/"])
    SEEDS.get(catalog)                              # None = there is none

    TOPICS = NamedValues("topic:", TopicCrawl)      # one value per key, all with this prefix
    TOPICS.put(catalog, "lighthouses", crawl)
    TOPICS.items(catalog)

Old warehouses stay readable: a value of version 1 is stored as it always was. A value whose shape changes in a way that
its decoder cannot read gets a higher version in `REGISTRY`. It is then stored behind an envelope with the version, and
its declaration has an `upgrade` that turns the bytes of an older version into a value of today. New fields with a
default need no new version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, Literal, NamedTuple, TypeVar

import msgspec

from quadloom.errors import StoreError
from quadloom.model import wire
from quadloom.stores.protocols.catalog import Catalog

T = TypeVar("T")
Encoding = Literal["msgpack", "json", "text", "bytes"]  # text: UTF-8, a number as Python writes it; bytes: as given
_ENVELOPE = b"\xc1qv"  # then one byte, the version. No msgpack, JSON or UTF-8 begins with \xc1


class ValueEntry(NamedTuple):
    """A line of the registry. `per_worker`: each worker of a cluster has its own, since it describes its own work."""

    name: str  # ends with a colon = a prefix, and each value has a key behind it
    encoding: Encoding
    meaning: str
    per_worker: bool = False
    version: int = 1


_ENTRIES = (
    ValueEntry("seeds", "json", "URLs that the crawl was started with, in order"),
    ValueEntry("settings", "json", "settings that all machines of a cluster share, as in a configuration file"),
    ValueEntry("contact", "text", "address that the user agent names, as given on the command line"),
    ValueEntry("scope", "json", "rules of the scope that were added to those of the configuration"),
    ValueEntry("scope-judged-by", "bytes", "the scope that was last applied to everything queued"),
    ValueEntry("forget:", "json", "a request to forget pages, then its report without their addresses, by its time"),
    ValueEntry("subscriptions", "json", "all subscriptions"),
    ValueEntry("published", "json", "URLs that entitled owners published, the newest first"),
    ValueEntry("standing:", "msgpack", "last result rows of a standing query, by subscription"),
    ValueEntry("standing-trouble:", "msgpack", "why a standing query has failed since, by subscription"),
    ValueEntry("websub:", "json", "a subscription to a WebSub hub, by its id"),
    ValueEntry("channel:", "msgpack", "how a site can be searched, by host"),
    ValueEntry(
        "site-search:", "msgpack", "how an ordinary crawl's last questions to a host's own search went, by host"
    ),
    ValueEntry("topic:", "json", "report of a topic's last crawl, by the name of its graph"),
    ValueEntry(
        "watched-topic:", "msgpack", "a topic that a crawl without an end looks for again and again, by its name"
    ),
    ValueEntry("query:", "json", "a saved SPARQL query with its title and description, by name"),
    ValueEntry("run:", "json", "one crawl of this warehouse: begin, end, counts and pace, by the time of its begin"),
    ValueEntry("woven-again-at", "text", "time of the last replay or rebuild, unix seconds"),
    ValueEntry("statistics", "msgpack", "counts of classes and properties of all indexed pages", True),
    ValueEntry("statistics-open", "text", "1 while a crawl runs; left over from one that did not end cleanly", True),
    ValueEntry("traps", "msgpack", "URLs refused as crawler traps, counted by host and reason", True),
    ValueEntry("schedule:sums", "msgpack", "sums of the refresh planner, and pages given up", True),
    ValueEntry("schedule:moved", "bytes", "pages to reschedule after a ranking: packed 64-bit fingerprints", True),
    ValueEntry("schedule:scope", "bytes", "the scope that all pages' schedules were compared with", True),
    ValueEntry("schedule:basis", "bytes", "policy, bandwidth and shares that all pages' schedules are based on", True),
    ValueEntry("schedule:suspects", "msgpack", "what was learned about which links lead to data", True),
)
REGISTRY: dict[str, ValueEntry] = {entry.name: entry for entry in _ENTRIES}
_DERIVED = ("statistics", "statistics-open", "scope-judged-by", "woven-again-at", "run:")
PER_WORKER = frozenset(entry.name for entry in _ENTRIES if entry.per_worker)


class _Codec(Generic[T]):
    """Values of one registered name to bytes and back."""

    def __init__(self, name: str, type: type[T], upgrade: Callable[[int, bytes], T] | None) -> None:
        self.entry = REGISTRY[name]
        self._type = type
        self._upgrade = upgrade

    def encode(self, value: T) -> bytes:
        data = self._encoded(value)
        return data if self.entry.version == 1 else _ENVELOPE + bytes([self.entry.version]) + data

    def _encoded(self, value: T) -> bytes:
        match self.entry.encoding:
            case "msgpack":
                return wire.encode(value)
            case "json":
                return msgspec.json.encode(value)
            case "text":
                return str(value).encode()
            case "bytes":
                assert isinstance(value, bytes)
                return value

    def decode(self, stored: bytes) -> T:
        """Raises `StoreError` for bytes that are not a value of this name, and for those of a newer version."""
        version, data = 1, stored
        if stored.startswith(_ENVELOPE):
            version, data = stored[len(_ENVELOPE)], stored[len(_ENVELOPE) + 1 :]
        if version > self.entry.version:
            raise StoreError(
                f"the value {self.entry.name} has version {version}, this program knows {self.entry.version}",
                hint="use the newest Quadloom version; a newer one has written this value",
            )
        try:
            if version < self.entry.version:
                assert self._upgrade is not None, f"{self.entry.name} has versions and no upgrade"
                return self._upgrade(version, data)
            return self._decoded(data)
        except (msgspec.DecodeError, ValueError) as error:
            raise StoreError(
                f"the value {self.entry.name} cannot be read: {error}",
                hint="restore the database from a backup, or crawl into a new warehouse",
            ) from error

    def _decoded(self, data: bytes) -> T:
        match self.entry.encoding:
            case "msgpack":
                return wire.decode(data, self._type)
            case "json":
                return msgspec.json.decode(data, type=self._type)
            case "text":
                return self._type(data.decode())  # type: ignore[call-arg]  # str or a number
            case "bytes":
                return self._type(data)  # type: ignore[call-arg]  # bytes


class NamedValue(_Codec[T]):
    """The value with a registered name. `upgrade`: for versions above 1, see the module."""

    def __init__(self, name: str, type: type[T], *, upgrade: Callable[[int, bytes], T] | None = None) -> None:
        assert not name.endswith(":"), f"{name} is a prefix"
        super().__init__(name, type, upgrade)

    def get(self, catalog: Catalog) -> T | None:
        """None = there is none."""
        stored = catalog.values.get(self.entry.name)
        return None if stored is None else self.decode(stored)

    def put(self, catalog: Catalog, value: T | None) -> None:
        """Write the value; None removes it. Durable on return, or with the enclosing transaction."""
        catalog.values.put(self.entry.name, None if value is None else self.encode(value))

    def get_all(self, catalog: Catalog) -> list[T]:
        """The values of all workers, if each has its own; else the one value, if there is one."""
        stored = [catalog.values.get(name) for name in self._of_workers(catalog)] or [
            catalog.values.get(self.entry.name)
        ]
        return [self.decode(data) for data in stored if data is not None]

    def put_encoded_for_all(self, catalog: Catalog, data: bytes) -> None:
        """`put_encoded`, and remove those of other workers: this one covers what they did."""
        with catalog.transaction():
            for name in self._of_workers(catalog):
                catalog.values.put(name, None)
            catalog.values.put(self.entry.name, data)

    def _of_workers(self, catalog: Catalog) -> list[str]:
        if not self.entry.per_worker:
            return []
        return [name for name in catalog.values.names("worker:") if name.split(":", 2)[2] == self.entry.name]

    def put_encoded(self, catalog: Catalog, data: bytes | None) -> None:
        """`put` of what `encode` made, perhaps in another thread."""
        catalog.values.put(self.entry.name, data)


def restore(catalog: Catalog, name: str, data: bytes) -> bool:
    """Write a value of another warehouse as it is stored there. False = it is none that a person gave or that was
    learned, but follows from pages, links and runs; nothing is written then."""
    entry = REGISTRY.get(name) or REGISTRY.get(name.partition(":")[0] + ":")
    if entry is None or entry.per_worker or entry.name in _DERIVED:
        return False
    catalog.values.put(name, data)
    return True


class NamedValues(_Codec[T]):
    """Values whose names have a registered prefix, one for each key."""

    def __init__(self, prefix: str, type: type[T], *, upgrade: Callable[[int, bytes], T] | None = None) -> None:
        assert prefix.endswith(":"), f"{prefix} is no prefix"
        super().__init__(prefix, type, upgrade)

    def get(self, catalog: Catalog, key: str, *, lock: bool = False) -> T | None:
        """None = there is none. `lock`: no other process changes it before the end of the transaction."""
        stored = catalog.values.get(self.entry.name + key, lock=lock)
        return None if stored is None else self.decode(stored)

    def put(self, catalog: Catalog, key: str, value: T | None) -> None:
        """Write a value; None removes it. Durable on return, or with the enclosing transaction."""
        catalog.values.put(self.entry.name + key, None if value is None else self.encode(value))

    def keys(self, catalog: Catalog) -> list[str]:
        """Sorted."""
        return [name.removeprefix(self.entry.name) for name in catalog.values.names(self.entry.name)]

    def items(self, catalog: Catalog) -> Iterator[tuple[str, T]]:
        """By key. Values removed meanwhile are left out."""
        for key in self.keys(catalog):
            value = self.get(catalog, key)
            if value is not None:
                yield key, value
