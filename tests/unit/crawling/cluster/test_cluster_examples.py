"""The worked examples of a cluster: their syntax, their commands and their settings."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from quadloom.cli.main import COMMANDS
from quadloom.settings.loading import load
from unit import ROOT

EXAMPLES = ROOT / "examples/cluster"
GUIDE = ROOT / "docs/howto/many-machines.md"


def test_the_unit_file_is_valid(tmp_path: Path) -> None:
    unit = configparser.ConfigParser(strict=True, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # names of systemd have capitals
    unit.read_string((EXAMPLES / "quadloom-worker.service").read_text(encoding="utf-8"))
    assert set(unit.sections()) == {"Unit", "Service", "Install"}
    assert _is_command(unit["Service"]["ExecStart"].split()[1:])
    program = shutil.which("systemd-analyze")
    if program is None:
        return
    # The program and the user exist where it is installed, not here; everything else must be right.
    checked = subprocess.run(
        [program, "verify", "--man=no", str(EXAMPLES / "quadloom-worker.service")],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    lines = checked.stderr.splitlines()
    assert not [line for line in lines if "quadloom-worker" in line and "not executable" not in line]


def test_the_compose_file_is_valid() -> None:
    compose = yaml.safe_load((EXAMPLES / "compose.yaml").read_text(encoding="utf-8"))
    services = compose["services"]
    assert {"postgres", "s3", "sparql", "worker", "site"} <= services.keys()
    for name, service in services.items():
        assert "image" in service or "build" in service, name
        assert set(service.get("depends_on", [])) <= services.keys(), name
        if "build" in service:
            assert (EXAMPLES / service["build"]["context"] / service["build"]["dockerfile"]).is_file(), name
    environment = {name: str(value) for name, value in services["worker"]["environment"].items()}
    settings = load(environ=environment, directory=Path("/nonexistent")).settings
    assert settings.stores.frontier.startswith("postgresql://") and settings.stores.archive.startswith("s3://")
    assert _is_command(services["worker"]["command"].split()) and _is_command(services["site"]["command"].split())
    program = shutil.which("docker")
    if program is not None and _works([program, "compose", "version"]):
        file = str(EXAMPLES / "compose.yaml")
        checked = subprocess.run(
            [program, "compose", "-f", file, "config", "-q"], capture_output=True, text=True, check=False, timeout=60
        )
        assert checked.returncode == 0, checked.stderr


def test_the_kubernetes_manifests_are_valid() -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8")))
    assert [document["kind"] for document in documents] == ["ConfigMap", "StatefulSet", "Deployment", "Service"]
    config = tomllib.loads(documents[0]["data"]["quadloom.toml"])
    assert config["stores"]["catalog"] == "postgresql:"
    for document in documents[1:3]:
        template = document["spec"]["template"]
        assert template["metadata"]["labels"] == document["spec"]["selector"]["matchLabels"]
        (container,) = template["spec"]["containers"]
        assert _is_command(container["args"])
        volumes = {volume["name"] for volume in template["spec"]["volumes"]}
        volumes |= {claim["metadata"]["name"] for claim in document["spec"].get("volumeClaimTemplates", [])}
        assert {mount["name"] for mount in container["volumeMounts"]} == volumes


def test_the_settings_of_the_manifests_are_known(tmp_path: Path) -> None:
    documents = list(yaml.safe_load_all((EXAMPLES / "kubernetes.yaml").read_text(encoding="utf-8")))
    file = tmp_path / "quadloom.toml"
    file.write_text(documents[0]["data"]["quadloom.toml"], encoding="utf-8")
    assert load(config=file, environ={}).settings.stores.quads == "sparql+https://sparql.example.org"


def _is_command(arguments: list[str]) -> bool:
    """Options of every command with their values, then a command that exists."""
    words = list(arguments)
    while words and words[0].startswith("-"):
        del words[:2]
    return bool(words) and words[0] in COMMANDS


def _works(command: list[str]) -> bool:
    try:
        return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode == 0
    except OSError:
        return False


def test_all_guides_say_the_same_about_a_server_that_is_away() -> None:
    """Workers wait for every server without an end (`tests/e2e/test_cluster_outages.py`); the table says so once."""
    table = GUIDE.read_text(encoding="utf-8").partition("## When something fails")[2].partition("\n## ")[0]
    for server in ("the bucket is away", "the SPARQL server is away", "PostgreSQL is away", "PostgreSQL is full"):
        (row,) = [line for line in table.splitlines() if server in line]
        assert "wait" in row and "end" not in row.partition("|")[2].split(), row
    for name in ("sparql-server", "s3-archive"):
        text = GUIDE.with_name(f"{name}.md").read_text(encoding="utf-8")
        assert "[waits as long as it takes](many-machines.md#when-something-fails)" in text, name
        assert "--timeout-s 60" not in text


def test_the_guide_says_what_every_command_does() -> None:
    table = GUIDE.read_text(encoding="utf-8").partition("## What each command does on a cluster")[2]
    named = re.findall(r"^\| `([a-z]+)` \|", table.partition("\n## ")[0], re.MULTILINE)
    assert named == sorted(COMMANDS.keys() - {"bench", "reproduce", "simulate"})


@pytest.mark.parametrize("name", ["quadloom-worker.service", "compose.yaml", "kubernetes.yaml"])
def test_the_guide_names_each_example(name: str) -> None:
    assert f"examples/cluster/{name}" in GUIDE.read_text(encoding="utf-8")
