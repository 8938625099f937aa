"""The rules on the shape of the tree find what they are there for, and the tree keeps them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import pytest

from unit import ROOT


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("check_lengths", ROOT / "tools/check_lengths.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tree_is_in_shape(tool: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert tool.main() == 0, capsys.readouterr().out


def test_long_files_and_crowded_folders(tool: ModuleType) -> None:
    texts = {"src/quadloom/a/__init__.py": "", **{f"src/quadloom/a/m{n}.py": "x = 1\n" * 450 for n in range(16)}}
    assert not list(tool.long_files(texts)) and not list(tool.crowded_folders(texts))
    texts["src/quadloom/a/b/c.py"] = "x = 1\n" * 451
    assert [path for path, _ in tool.long_files(texts)] == ["src/quadloom/a/b/c.py"]
    assert [path for path, _ in tool.crowded_folders(texts)] == ["src/quadloom/a"]
    rooms = {f"src/quadloom/room{n}/m.py": "" for n in range(20)}
    assert not list(tool.crowded_folders(rooms)), "the rooms of the program"


def test_formatting_is_skipped_on_tables_only(tool: ModuleType) -> None:
    table = "TABLE = (\n    1, 2,\n)  # fmt: skip\n"
    call = "def f():\n    g(\n        1, 2,\n    )  # fmt: skip\n"
    assert list(tool.skipped_formatting({"src/quadloom/a.py": table})) == []
    assert list(tool.skipped_formatting({"src/quadloom/a.py": table + call})) == ["src/quadloom/a.py:7"]


@pytest.mark.parametrize(
    ("others", "is_slice"),
    [
        ({"a/user.py": "from quadloom.a.small import f\n"}, True),
        ({"a/user.py": "from quadloom.a import small\n"}, True),
        ({"a/user.py": "import quadloom.a.small\n", "b/user.py": "import quadloom.a.small\n"}, False),
        ({"b/user.py": "from quadloom.a.small import f\n"}, False),
        ({"a/__init__.py": "from quadloom.a.small import f\n"}, False),
        ({"a/user.py": "import quadloom.a.small\n", "b/user.py": "start('quadloom.a.small:f')\n"}, False),
        ({}, False),
    ],
)
def test_a_small_module_with_one_user_next_door_is_a_slice(
    tool: ModuleType, others: dict[str, str], is_slice: bool
) -> None:
    texts = {"src/quadloom/a/small.py": "def f(): ...\n"} | {f"src/quadloom/{p}": text for p, text in others.items()}
    assert [path for path, _ in tool.slices(texts)] == (["src/quadloom/a/small.py"] if is_slice else [])
    texts["src/quadloom/a/small.py"] *= 60
    assert not list(tool.slices(texts))
