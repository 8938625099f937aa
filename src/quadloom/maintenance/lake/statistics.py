"""Statistics of a lake in the form of Web Data Commons: pages, domains and entities by syntax, class and property.

Each is one question to the tables, and a Parquet file `statistics/<name>.parquet`. A page has data if a syntax other
than `html`, `meta` and `text` gave statements: those describe every page. A domain is a registered domain (the column
`site`), an entity is a subject with a class.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from quadloom.errors import UsageError
from quadloom.maintenance.lake.place import BucketLake, DirectoryLake
from quadloom.maintenance.lake.query import LakeAnswer, LakeTables
from quadloom.maintenance.lake.tables import arrow

FOLDER = "statistics"
_TYPE = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"
_WITH_DATA = "len(list_filter(syntaxes, lambda s: s NOT IN ('html', 'meta', 'text'))) > 0"
_BY_SYNTAX = "(SELECT page, site, host, unnest(syntaxes) AS syntax FROM pages)"
_QUESTIONS = {
    "summary": f"""
        SELECT count(*) AS pages, coalesce(sum(body_bytes), 0)::BIGINT AS bytes,
          count(*) FILTER ({_WITH_DATA}) AS pages_with_data, count(DISTINCT site) AS domains,
          count(DISTINCT site) FILTER ({_WITH_DATA}) AS domains_with_data, coalesce(sum(quads), 0)::BIGINT AS quads,
          (SELECT count(DISTINCT (page, subject)) FROM quads WHERE predicate = '{_TYPE}') AS entities,
          (SELECT count(*) FROM links) AS links, (SELECT count(*) FROM findings) AS findings FROM pages""",
    "syntaxes": f"""
        SELECT syntax, count(*) AS pages, count(DISTINCT site) AS domains FROM {_BY_SYNTAX}
        GROUP BY syntax ORDER BY pages DESC, syntax""",
    "tlds": f"""
        SELECT syntax, regexp_extract(host, '[^.]*$') AS tld, count(DISTINCT site) AS domains, count(*) AS pages
        FROM {_BY_SYNTAX} GROUP BY syntax, tld ORDER BY syntax, domains DESC, tld""",
    "domains": f"""
        SELECT site, count(*) AS pages, count(*) FILTER ({_WITH_DATA}) AS pages_with_data,
          sum(quads)::BIGINT AS quads, list_sort(list_distinct(flatten(list(syntaxes)))) AS syntaxes
        FROM pages GROUP BY site ORDER BY pages_with_data DESC, site""",
    "classes": f"""
        SELECT object AS class, count(DISTINCT (page, subject)) AS entities, count(DISTINCT page) AS pages,
          count(DISTINCT site) AS domains FROM quads JOIN pages USING (page) WHERE predicate = '{_TYPE}'
        GROUP BY object ORDER BY entities DESC, class""",
    "properties": """
        SELECT predicate AS property, count(*) AS quads, count(DISTINCT page) AS pages, count(DISTINCT site) AS domains
        FROM quads q JOIN pages USING (page) GROUP BY predicate ORDER BY pages DESC, property""",
    "findings": """
        SELECT code, severity, count(*) AS findings, count(DISTINCT page) AS pages, count(DISTINCT site) AS domains
        FROM findings JOIN pages USING (page) GROUP BY code, severity ORDER BY pages DESC, code""",
}


class LakeStatistics(msgspec.Struct, frozen=True):
    """Rows by the name of the statistic; their columns are in the Parquet file of the same name."""

    summary: dict[str, int]
    tables: dict[str, LakeAnswer]


def count(place: DirectoryLake | BucketLake) -> LakeStatistics:
    """Count everything, and write it into the lake. Raises `UsageError` for the lake of a warehouse."""
    pyarrow = arrow()
    with LakeTables(place) as tables, tempfile.TemporaryDirectory(prefix="quadloom-statistics-") as folder:
        if "syntaxes" not in tables.ask("SELECT * FROM pages LIMIT 0").columns:
            raise UsageError(
                "this lake does not have the syntaxes of its pages",
                hint="statistics are counted in what `quadloom bulk` has written; of a warehouse: `quadloom stats`",
            )
        found = {name: tables.ask(question) for name, question in _QUESTIONS.items()}
        for name, answer in found.items():
            rows = [dict(zip(answer.columns, row, strict=True)) for row in answer.rows]
            path = Path(folder) / f"{name}.parquet"
            pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
            place.put(path, f"{FOLDER}/{name}.parquet")
    summary = found.pop("summary")
    numbers = {name: int(str(value)) for name, value in zip(summary.columns, summary.rows[0], strict=True)}
    return LakeStatistics(numbers, found)
