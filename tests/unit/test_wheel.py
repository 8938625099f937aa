"""What the wheel of quadloom holds: the package and its data files, neither the lab nor a generator."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src/quadloom"


def _packaged() -> set[Path]:
    """The files that setuptools takes: modules of packages below src, and the globs of package-data."""
    options = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert options["packages"]["find"] == {"where": ["src"]}
    assert [path.name for path in (ROOT / "src").iterdir() if (path / "__init__.py").exists()] == ["quadloom"]
    modules = {path for path in PACKAGE.rglob("*.py") if (path.parent / "__init__.py").exists()}
    return modules.union(*(PACKAGE.glob(pattern) for pattern in options["package-data"]["quadloom"]))


def test_every_file_of_the_package_is_in_the_wheel() -> None:
    tracked = subprocess.run(["git", "ls-files", "-z", "src/quadloom"], cwd=ROOT, capture_output=True, check=False)
    if tracked.returncode or not tracked.stdout:
        pytest.skip("not in a git checkout")
    files = {ROOT / name for name in tracked.stdout.decode().split("\0") if name}
    missing = {path for path in files if path.exists()} - _packaged()
    assert not missing, "add it to package-data in pyproject.toml"


def test_the_demo_is_a_data_file_and_a_small_server() -> None:
    demo = {path.name for path in _packaged() if path.parent == PACKAGE / "demo"}
    assert demo == {"__init__.py", "questions.py", "server.py", "sites.json.gz"}


def test_the_package_never_imports_the_lab() -> None:
    named = [path for path in PACKAGE.rglob("*.py") if "import quadloom_lab" in path.read_text(encoding="utf-8")]
    named += [path for path in PACKAGE.rglob("*.py") if "from quadloom_lab" in path.read_text(encoding="utf-8")]
    assert not named
    code = "import sys; sys.modules['quadloom_lab'] = None; import quadloom.cli.demo, quadloom.cli.serve"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
def test_a_built_wheel_has_no_lab(tmp_path: Path) -> None:
    setuptools = pytest.importorskip("setuptools")
    if int(setuptools.__version__.split(".")[0]) < 77:
        pytest.skip("pyproject.toml needs setuptools 77")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "-w",
        str(tmp_path),
        str(ROOT),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "quadloom/demo/sites.json.gz" in names
    assert not [name for name in names if "lab" in name.split("/")[0] or "fakeweb" in name]
