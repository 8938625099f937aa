"""A warehouse that version 0.1 wrote is read, crawled on and verified by the code of today, and nothing is lost.

Only the command line and the public library are used, so the test shows what a user sees after an update.
`fixtures/make_old_warehouse.py` says how the warehouse was made.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import pytest

import quadloom
from fakeweb import frozen
from fixtures.old_warehouse import EXPECTED, QUERIES, SEARCHES, Cli, answers, notices, rows, statements, unpack, wishes
from quadloom.asking.search import SearchFilters


@pytest.fixture(scope="module")
def expected() -> dict[str, object]:
    found: dict[str, object] = json.loads(EXPECTED.read_text(encoding="utf-8"))
    return found


@pytest.fixture
def web() -> Iterator[frozen.Served]:
    """The web that the warehouse was made from, on the day of its last crawl."""
    with ExitStack() as stack:
        try:
            served = stack.enter_context(frozen.serving(day=1))
        except OSError as error:
            message = f"NOT TESTED whether an old warehouse can be crawled on: port {frozen.PORT} is taken: {error}"
            warnings.warn(message, stacklevel=1)
            pytest.skip(message)
        yield served


def test_commands_read_it(tmp_path: Path, expected: dict[str, object]) -> None:
    unpack(tmp_path)
    found = answers(Cli(tmp_path))
    assert sorted(found) == sorted(expected)
    for part, answer in found.items():
        if part == "changes":
            continue
        assert answer == expected[part], part
    # Statements of notices are found out by reading both versions again, and blank nodes have other names since 0.2.
    told, before = found["changes"], expected["changes"]
    assert isinstance(told, list) and isinstance(before, list)
    names = ("id", "subscription", "kind", "url", "title")
    assert [[one[name] for name in names] for one in told] == [[one[name] for name in names] for one in before]


def test_the_library_reads_it(tmp_path: Path, expected: dict[str, object]) -> None:
    searches, queries = expected["search"], expected["sparql"]
    assert isinstance(searches, dict) and isinstance(queries, dict)
    with quadloom.Warehouse.read(unpack(tmp_path)) as warehouse:
        for words, more in SEARCHES.items():
            filters = cast(SearchFilters, {**more, "gone": True, "limit": 100})
            answer = warehouse.search(words, **filters)
            found = {"total": answer.total, "pages": sorted(hit.id for hit in answer.hits)}
            assert found == searches[words], words
        for name, query in QUERIES.items():
            assert rows(b"".join(warehouse.sparql(query, format="tsv"))) == queries[name], name


def test_it_is_crawled_on(
    tmp_path: Path, expected: dict[str, object], web: frozen.Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, cli = unpack(tmp_path), Cli(tmp_path, web.address)
    stated, told, before = statements(cli), notices(cli), cli.json("status")
    monkeypatch.chdir(tmp_path)  # the library reads quadloom.toml here
    for name in [name for name in os.environ if name.startswith("QUADLOOM_")]:
        monkeypatch.delenv(name)
    with quadloom.open(path) as warehouse:
        assert sum(1 for _ in warehouse.crawl(max_pages=10)) >= 10
        drifts = warehouse.maintenance.verify().drifts
        # Older versions lost links of pages that they ended with, and named blank nodes otherwise.
        assert {drift.what for drift in drifts} <= {"links", "quads"}
    cli.run("rebuild")
    cli.run("crawl")
    now = cli.json("status")
    assert cli.json("verify")["ok"]
    lost = _without_names(stated) - _without_names(statements(cli))
    assert not lost, "the web is as it was, so no statement of a page may be lost"
    assert cli.json("search", "number*", "--gone", "--limit", "1")["total"] == frozen.COUNT + frozen.STORIES, (
        "each page was read"
    )
    assert now["documents"] > before["documents"] and now["quads"] > before["quads"]  # type: ignore[operator]
    assert notices(cli)[: len(told)] == told
    assert not [asked for asked in web.requests if asked[1].startswith(("/private/", "/draft/"))]

    web.day, last = 2, len(notices(cli))
    page = f"{frozen.BOOKS}/book/{frozen.CHANGED_ON_DAY_2}"
    cli.run("refresh", page)
    cli.run("crawl", "--max-pages", "1")
    assert ("changed", page, "type") in [(one["kind"], one["url"], one["subscription"]) for one in notices(cli)[last:]]
    assert page in b"".join(web.posted).decode()
    assert cli.json("verify")["ok"]
    assert wishes(cli) == expected["wishes"]


def _without_names(lines: list[str]) -> Counter[str]:
    """Statements with one name for all blank nodes, which have other names since 0.2."""
    return Counter(re.sub(r"urn:quadloom:blank:[0-9a-f]+", "urn:quadloom:blank", line) for line in lines)


def test_its_text_index_is_told_to_be_old_and_rebuilt(tmp_path: Path, expected: dict[str, object]) -> None:
    path, cli = unpack(tmp_path), Cli(tmp_path)
    searches = expected["search"]
    assert isinstance(searches, dict)
    with quadloom.Warehouse.read(path) as warehouse:
        assert warehouse.ask.status()["text_index"] == "outdated"
    cli.run("rebuild")
    with quadloom.Warehouse.read(path) as warehouse:
        assert warehouse.ask.status()["text_index"] == "current"
        assert warehouse.search("harbour", gone=True, limit=1).total == searches["harbour"]["total"]
        assert warehouse.search("harbour", limit=1).total == searches["harbour"]["total"] - 1, "one page is gone"
        assert warehouse.search("headings:harbour", limit=1).total > 0, "a field that the old index did not have"
