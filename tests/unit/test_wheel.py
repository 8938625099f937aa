"""What the wheel of quadloom holds: the package and its data files, neither the lab nor a generator."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from unit import ROOT

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
    sources = {path for path in files if path.suffix in (".c", ".h")}  # in the sdist; the wheel has what they become
    missing = {path for path in files if path.exists()} - sources - _packaged()
    assert not missing, "add it to package-data in pyproject.toml"


def test_the_demo_is_a_data_file_and_a_small_server() -> None:
    demo = {path.name for path in _packaged() if path.parent == PACKAGE / "cli/demo_sites"}
    assert demo == {"__init__.py", "questions.py", "server.py", "sites.json.gz"}


def test_the_package_never_imports_the_lab() -> None:
    named = [path for path in PACKAGE.rglob("*.py") if "import quadloom_lab" in path.read_text(encoding="utf-8")]
    named += [path for path in PACKAGE.rglob("*.py") if "from quadloom_lab" in path.read_text(encoding="utf-8")]
    assert not named
    code = "import sys; sys.modules['quadloom_lab'] = None; import quadloom.cli.demo, quadloom.cli.serve"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_an_empty_environment_with_only_the_wheel(tmp_path: Path) -> None:
    """Built as `make dist` builds it, installed with its dependencies and nothing else; the first answer comes soon."""
    pytest.importorskip("build")
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    done = subprocess.run(build, capture_output=True, text=True, timeout=600, check=False)
    if "No matching distribution found for setuptools" in done.stdout + done.stderr:
        pytest.skip("pyproject.toml needs setuptools 77, and no package index has it")
    assert done.returncode == 0, done.stdout[-2000:]
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (sdist,) = (tmp_path / "dist").glob("*.tar.gz")
    names = zipfile.ZipFile(wheel).namelist()
    assert "quadloom/cli/demo_sites/sites.json.gz" in names and "quadloom/py.typed" in names
    assert not [name for name in names if "lab" in name.split("/")[0] or "fakeweb" in name]
    if (PACKAGE / "web/static/vendor/manifest.json").is_file():  # `make web` was run
        assert [name for name in names if name.startswith("quadloom/web/static/vendor/yasgui")]
    assert f"quadloom-{_version()}" in sdist.name and f"quadloom-{_version()}" in wheel.name

    venv = tmp_path / "empty"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True, timeout=300)
    pip = [sys.executable, "-m", "pip", "--python", str(venv / "bin/python"), "install", "--quiet"]
    pip += ["--only-binary", ":all:", str(wheel)]
    installed = subprocess.run(pip, capture_output=True, text=True, timeout=600, check=False)
    if installed.returncode:
        pytest.skip(f"dependencies cannot be installed here: {installed.stderr[-300:]}")

    def quadloom(*arguments: str) -> str:
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}  # no npm, no compiler of ours, no PYTHONPATH
        command = [str(venv / "bin/quadloom"), *arguments]
        ran = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert ran.returncode == 0, ran.stderr[-2000:]
        return ran.stdout

    assert quadloom("--version").strip() == _version()
    assert "quadloom-demo" in quadloom("demo", "--offline")
    assert quadloom("-w", "quadloom-demo", "search", "museum", "--json").count("\n") >= 1
    assert quadloom("-w", "quadloom-demo", "audit", "--json")
    assert "Serve search" in quadloom("serve", "--help")


def _version() -> str:
    return str(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])
