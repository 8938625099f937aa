"""Files for people who clone the repository: CI, hooks, templates, citation, metadata. They say what the code does."""

from __future__ import annotations

import re
import subprocess
import tomllib
from typing import Any

import pytest
import yaml

from unit import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
WRITTEN = [
    ".editorconfig",
    ".github/ISSUE_TEMPLATE/bug.yml",
    ".github/ISSUE_TEMPLATE/wish.yml",
    ".github/PULL_REQUEST_TEMPLATE.md",
    ".github/dependabot.yml",
    ".github/workflows/ci.yml",
    ".pre-commit-config.yaml",
    "CITATION.cff",
    "CODE_OF_CONDUCT.md",
    "SECURITY.md",
]


def read_yaml(path: str) -> Any:
    return yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", WRITTEN)
def test_no_address_is_invented(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not re.search(r"[\w.]+@[\w-]+\.\w+", text)
    assert not re.search(r"https?:", text), "no host is known yet"


def test_no_test_is_run_twice() -> None:
    for repeat in ("--last-failed", "--lf", "--reruns", "--ff"):
        assert repeat not in MAKEFILE


@pytest.mark.parametrize("target", ["test", "test-all"])
def test_tests_that_judge_time_run_alone_and_all_others_beside_each_other(target: str) -> None:
    recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)
    assert recipe is not None
    runs = re.findall(r"-m pytest -n (\d).*?-m \"([^\"]+)\"", recipe[1])
    assert [(workers == "0", "not timing" in markers) for workers, markers in runs] == [(False, True), (True, False)]


def test_ci_runs_what_the_makefile_has() -> None:
    jobs = read_yaml(".github/workflows/ci.yml")["jobs"]
    commands = [step["run"] for job in jobs.values() for step in job["steps"] if "run" in step]
    targets = {name for command in commands for name in re.findall(r"\bmake ([\w-]+)", command)}
    assert {"lint", "test", "docs", "web", "test-all", "site", "coverage"} <= targets
    assert all(re.search(rf"^{name}:", MAKEFILE, re.MULTILINE) for name in targets)


def test_ci_tests_the_pythons_that_the_metadata_names() -> None:
    named = [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", line)]
    matrix = read_yaml(".github/workflows/ci.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert matrix == named
    assert PROJECT["requires-python"] == f">={named[0]}"


def test_hooks_use_the_tools_of_the_environment() -> None:
    (repository,) = read_yaml(".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert all(hook["entry"].startswith(".venv/bin/") for hook in repository["hooks"])


def test_dependabot_looks_where_dependencies_are() -> None:
    where = {(one["package-ecosystem"], one["directory"]) for one in read_yaml(".github/dependabot.yml")["updates"]}
    assert where == {("pip", "/"), ("npm", "/web-assets"), ("github-actions", "/")}
    assert (ROOT / "requirements.txt").is_file() and (ROOT / "web-assets/package.json").is_file()


def test_citation_names_the_software_and_the_papers_it_unites() -> None:
    citation = read_yaml("CITATION.cff")
    assert citation["cff-version"] == "1.2.0" and citation["message"]
    assert citation["authors"] == PROJECT["authors"] == [{"name": "The Quadloom developers"}]
    assert citation["contact"] == PROJECT["maintainers"] == citation["authors"]
    assert citation["license"] == PROJECT["license"]
    systems = (ROOT / "docs/explanation/four-systems.md").read_text(encoding="utf-8")
    assert len(citation["references"]) == 4
    for paper in citation["references"]:
        heading = next(line for line in systems.splitlines() if line.startswith("## ") and str(paper["year"]) in line)
        assert all(author["family-names"] in heading for author in paper["authors"])


def test_a_reader_of_the_metadata_learns_whom_to_ask() -> None:
    """There is no address to name; what the package shows as its description says where questions and reports go."""
    assert PROJECT["readme"] == "README.md"
    contact = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Contact\n")[2].partition("\n## ")[0]
    assert "issue" in contact and "(SECURITY.md)" in contact and "(CONTRIBUTING.md)" in contact
    assert (ROOT / ".github/ISSUE_TEMPLATE/bug.yml").is_file()


def test_the_public_files_are_in_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files", *WRITTEN], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a clone")
    assert sorted(listed.stdout.split()) == sorted(WRITTEN)
