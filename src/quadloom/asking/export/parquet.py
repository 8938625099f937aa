"""Statements as Parquet, one row each, for DuckDB, pandas and the like. Needs the extra `quadloom[parquet]`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Protocol

import pyoxigraph as ox

from quadloom.asking.sparql.frames import require

_GROUP = 100_000
_COLUMNS = ("subject", "predicate", "object", "object_kind", "language", "datatype", "graph")


class _Sink(Protocol):
    def write(self, data: bytes, /) -> int: ...


def write_parquet(quads: Iterable[ox.Quad], stream: _Sink) -> None:
    """Row groups of 100,000 statements. IRIs and literals are plain strings, an absent language or datatype is null."""
    require("pyarrow", "pip install 'quadloom[parquet]', or export nq.zst")
    import pyarrow
    import pyarrow.parquet

    schema = pyarrow.schema([(name, pyarrow.string()) for name in _COLUMNS])
    remaining = iter(quads)
    with pyarrow.parquet.ParquetWriter(
        pyarrow.PythonFile(_CountedStream(stream), "w"), schema, compression="zstd"
    ) as writer:
        while rows := [_row(quad) for quad in islice(remaining, _GROUP)]:
            columns = [pyarrow.array(column, pyarrow.string()) for column in zip(*rows, strict=True)]
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))


def _row(quad: ox.Quad) -> tuple[str | None, ...]:
    kind, language, datatype = "iri", None, None
    text = quad.object.value if not isinstance(quad.object, ox.Triple) else str(quad.object)
    if isinstance(quad.object, ox.Literal):
        kind, language = "literal", quad.object.language
        datatype = None if language else quad.object.datatype.value
    elif not isinstance(quad.object, ox.NamedNode):
        kind = "other"
    graph = quad.graph_name.value if isinstance(quad.graph_name, ox.NamedNode) else None
    return str(quad.subject).strip("<>"), quad.predicate.value, text, kind, language, datatype, graph


class _CountedStream:
    """A stream that counts the bytes written: Parquet's footer contains offsets from the start."""

    closed = False

    def __init__(self, stream: _Sink) -> None:
        self._stream = stream
        self._position = 0

    def write(self, data: bytes) -> int:
        self._stream.write(bytes(data))
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        return self._position

    def flush(self) -> None:
        return

    def close(self) -> None:
        return
