"""`quadloom init` writes what the user said, and nothing that would hide what the user's own configuration says."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from quadloom.cli.main import run
from quadloom.settings import Settings
from quadloom.settings.loading import load


def test_a_new_file_hides_nothing_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "home/quadloom/config.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[crawl]\ncontact = "me@example.org"\n[guard]\nallow = ["10.0.0.0/8"]\n', encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert run(["init"]) == 0
    settings = load(directory=tmp_path).settings
    assert settings.crawl.contact == "me@example.org"
    assert settings.guard.allow == ["10.0.0.0/8"]


@pytest.mark.parametrize("contact", ["you@example.org", 'https://example.org/"quoted"\\path'])
def test_a_contact_is_kept_as_given(tmp_path: Path, contact: str) -> None:
    file = tmp_path / "quadloom.toml"
    assert run(["init", str(file), "--contact", contact]) == 0
    assert tomllib.loads(file.read_text(encoding="utf-8"))["crawl"]["contact"] == contact


def test_the_defaults_it_shows_are_the_defaults(tmp_path: Path) -> None:
    file = tmp_path / "quadloom.toml"
    assert run(["init", str(file)]) == 0
    lines = file.read_text(encoding="utf-8").splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("# [[site]]"))
    shown = [line.removeprefix("# ") for line in lines[2:start] if "you@example.org" not in line]
    settings = msgspec.convert(tomllib.loads("\n".join(shown)), Settings)
    changed = {"seeds": settings.crawl.seeds, "max_pages": 1000, "max_depth": 10}
    assert settings == msgspec.structs.replace(Settings(), crawl=msgspec.structs.replace(Settings().crawl, **changed))
