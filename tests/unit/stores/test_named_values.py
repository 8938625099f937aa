"""Named values: one registry, old encodings readable, versions where a shape changes, no names past the registry."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import sqlite3
from pathlib import Path

import pytest

import quadloom
from quadloom.errors import StoreError
from quadloom.stores import named_values
from quadloom.stores.frontier.policy import FrontierPolicy
from quadloom.stores.named_values import PER_WORKER, REGISTRY, NamedValue, NamedValues, ValueEntry
from quadloom.stores.sqlite.catalog import SqliteCatalog
from quadloom.stores.sqlite.database import SqliteDatabase
from quadloom_lab.memory.catalog import MemoryCatalog
from quadloom_lab.memory.frontier import MemoryFrontier

ROOT = Path(quadloom.__file__).parent
PAGE = ROOT.parents[1] / "docs" / "reference" / "named-values.md"


def memory() -> MemoryCatalog:
    return MemoryCatalog(MemoryFrontier(FrontierPolicy(), now=0.0))


def declared() -> dict[str, NamedValue[object] | NamedValues[object]]:
    """All declarations of the package, by name."""
    found: dict[str, NamedValue[object] | NamedValues[object]] = {}
    for info in pkgutil.walk_packages(quadloom.__path__, "quadloom."):
        if not info.name.endswith("__main__") and _declares(info.name):
            for value in vars(importlib.import_module(info.name)).values():
                if isinstance(value, NamedValue | NamedValues):
                    found[value.entry.name] = value
    return found


def _declares(module: str) -> bool:
    path = ROOT.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file.exists() and "named_values import" in file.read_text(encoding="utf-8")  # not if it is written in C


def test_values_come_back_in_every_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = memory()
    seeds, contact = NamedValue("seeds", list[str]), NamedValue("contact", str)
    at, packed = NamedValue("woven-again-at", float), NamedValue("schedule:moved", bytes)
    assert (seeds.get(catalog), contact.get(catalog)) == (None, None)
    seeds.put(catalog, ["https://a.example/"])
    contact.put(catalog, "ü")
    at.put(catalog, 1700000000.25)
    packed.put(catalog, b"\x00\xff")
    assert (seeds.get(catalog), contact.get(catalog)) == (["https://a.example/"], "ü")
    assert (at.get(catalog), packed.get(catalog)) == (1700000000.25, b"\x00\xff")
    assert catalog.values.get("seeds") == b'["https://a.example/"]', "as it always was, without an envelope"
    seeds.put(catalog, None)
    assert seeds.get(catalog) is None


def test_values_with_keys_are_listed_by_key() -> None:
    catalog = memory()
    answers = NamedValues("standing:", list[str])
    for key in ("b", "a"):
        answers.put(catalog, key, [key])
    catalog.values.put("standing-trouble:x", b"")
    assert list(answers.items(catalog)) == [("a", ["a"]), ("b", ["b"])]
    answers.put(catalog, "a", None)
    assert answers.keys(catalog) == ["b"]


def test_a_name_must_be_registered() -> None:
    with pytest.raises(KeyError):
        NamedValue("unheard-of", str)


def test_what_cannot_be_read_is_named() -> None:
    catalog = memory()
    catalog.values.put("seeds", b"{")
    with pytest.raises(StoreError, match="seeds cannot be read"):
        NamedValue("seeds", list[str]).get(catalog)


def test_a_new_version_reads_the_old_one_and_refuses_a_newer(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = memory()
    NamedValue("seeds", list[str]).put(catalog, ["a", "b"])
    monkeypatch.setitem(named_values.REGISTRY, "seeds", ValueEntry("seeds", "msgpack", "with dates", version=2))

    def upgrade(version: int, data: bytes) -> dict[str, float]:
        assert version == 1
        return dict.fromkeys(data.decode().strip('[]"').split('","'), 0.0)

    dated = NamedValue("seeds", dict[str, float], upgrade=upgrade)
    assert dated.get(catalog) == {"a": 0.0, "b": 0.0}
    dated.put(catalog, {"c": 1.0})
    assert dated.get(catalog) == {"c": 1.0}
    monkeypatch.setitem(named_values.REGISTRY, "seeds", ValueEntry("seeds", "json", "as before"))
    with pytest.raises(StoreError, match="seeds has version 2") as refusal:
        NamedValue("seeds", list[str]).get(catalog)
    assert "newest Quadloom" in (refusal.value.hint or "")


def test_every_registered_value_is_declared_once_and_reads_what_today_s_program_wrote(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "q.db")
    connection.executescript((Path(__file__).with_name("sqlite") / "today.sql").read_text(encoding="utf-8"))
    connection.close()
    database = SqliteDatabase.open(tmp_path / "q.db")
    catalog = SqliteCatalog(database)
    values = declared()
    assert sorted(values) == sorted(REGISTRY)
    for value in values.values():
        if isinstance(value, NamedValues):
            assert len(list(value.items(catalog))) == 1, value.entry.name
        else:
            assert value.get(catalog) is not None, value.entry.name
            value.put(catalog, value.get(catalog))
    database.close()


def test_nothing_but_the_registry_asks_a_catalog_for_names() -> None:
    """`catalog.values.get("…")` anywhere else would be a second, unwritten schema."""
    asked = []
    for path in sorted(ROOT.rglob("*.py")):
        if path.relative_to(ROOT).as_posix() == "stores/named_values.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
                continue
            owner = ast.unparse(node.func.value).rpartition(".")[2].lstrip("_")
            if owner == "catalog" and node.func.attr in ("get", "put", "names"):
                asked.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert asked == []


def test_the_reference_lists_every_value() -> None:
    rows = [
        f"| `{entry.name}{'…' if entry.name.endswith(':') else ''}` | {entry.encoding} | {entry.version} "
        f"| {'worker' if entry.name in PER_WORKER else 'warehouse'} | {entry.meaning} |"
        for entry in REGISTRY.values()
    ]
    written = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    assert written == rows
