"""JSON-LD contexts kept by the user: found under every spelling, never asked for, and told of where missing."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path

import pytest

from quadloom.cli.main import run
from quadloom.documents.syntaxes.jsonld.loader import ContextFolder, ContextLoader, with_folder
from quadloom.documents.transform import transform
from quadloom.errors import SyntaxInvalid, UsageError
from quadloom.settings import Settings, TransformSettings

URL = "https://vocab.example/ns/weaving"
CONTEXT = {"@context": {"title": "http://vocab.example/#title"}}
DOCUMENT = json.dumps({"@context": "http://vocab.example/ns/weaving#", "@id": "http://x.example/1", "title": "Warp"})


def kept(folder: Path) -> ContextFolder:
    contexts = ContextFolder(folder / "contexts")
    contexts.add(URL, json.dumps(CONTEXT).encode(), max_bytes=10_000)
    return contexts


def settings(folder: Path) -> Settings:
    return Settings(transform=TransformSettings(contexts="known", contexts_folder=str(folder / "contexts")))


@pytest.mark.parametrize(
    "spelling", [URL, "http://vocab.example/ns/weaving", "https://VOCAB.example/ns/weaving/", f"{URL}#", f"{URL}/#x"]
)
def test_spellings_of_one_address(tmp_path: Path, spelling: str) -> None:
    found = kept(tmp_path).find(spelling)
    assert found is not None
    assert json.loads(found) == CONTEXT


@pytest.mark.parametrize("other", ["https://vocab.example/ns/Weaving", "vocab.example/ns/weaving", "file:///etc/passwd",
                                   "https://vocab.example/../../etc/passwd", "https://x/" + "a" * 5000])  # fmt: skip
def test_other_addresses_are_others(tmp_path: Path, other: str) -> None:
    assert kept(tmp_path).find(other) is None


@pytest.mark.parametrize("body", [b"<html>", b"[]", b'{"context": {}}', b'{"@context": {}} ' + b" " * 10_000])
def test_only_contexts_are_kept(tmp_path: Path, body: bytes) -> None:
    with pytest.raises(UsageError):
        ContextFolder(tmp_path).add(URL, body, max_bytes=10_000)
    assert list(tmp_path.iterdir()) == []


def test_a_document_is_read_with_it_and_nobody_is_asked(tmp_path: Path) -> None:
    kept(tmp_path)
    chosen = settings(tmp_path)
    result = transform(
        DOCUMENT.encode(),
        url="http://x.example/1.jsonld",
        content_type="application/ld+json",
        settings=chosen,
    )
    assert b'<http://x.example/1> <http://vocab.example/#title> "Warp"' in result.nquads
    assert not [finding for finding in result.findings if finding.severity == "error"]


def test_a_missing_one_is_told_with_its_cure(tmp_path: Path) -> None:
    chosen = settings(tmp_path)
    result = transform(
        DOCUMENT.encode(),
        url="http://x.example/1.jsonld",
        content_type="application/ld+json",
        settings=chosen,
    )
    assert any("quadloom contexts add http://vocab.example/ns/weaving" in f.message for f in result.findings)


def test_without_a_folder_the_loader_is_as_before() -> None:
    def fetch(url: str) -> bytes:
        return b"{}"

    assert with_folder("", None) is None
    assert with_folder("", fetch) is fetch


def test_the_command_adds_lists_and_removes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config, source = tmp_path / "quadloom.toml", tmp_path / "weaving.json"
    config.write_text(f'[transform]\ncontexts_folder = "{tmp_path}/kept"\n')
    source.write_text(json.dumps(CONTEXT))
    options = ["--config", str(config), "--json"]
    assert run(["contexts", "add", URL, str(source), *options]) == 0
    capsys.readouterr()
    assert run(["contexts", "list", *options]) == 0
    assert json.loads(capsys.readouterr().out) == ["vocab.example/ns/weaving"]
    assert run(["contexts", "remove", URL, *options]) == 0
    assert run(["contexts", "remove", URL, *options]) == 4
    config.write_text("")
    assert run(["contexts", "list", *options]) == 2


def test_a_remembered_failure_holds_no_page() -> None:
    """A site names a dead server on each of its pages. An exception that is raised again holds the frames of every page
    that it went through, with all that the page consists of."""
    asked: list[str] = []
    said: list[tuple[str, str]] = []

    def dead(url: str) -> bytes:
        asked.append(url)
        raise OSError("no such host")

    loader = ContextLoader(dead)

    class Page:
        pass

    def read() -> weakref.ref[Page]:
        page = Page()
        try:
            loader.load("https://dead.example/context")
        except SyntaxInvalid as error:
            said.append((error.code, error.message))
        return weakref.ref(page)

    pages = [read() for _ in range(3)]
    gc.collect()
    assert [page() for page in pages] == [None] * 3
    assert len(asked) == 1
    code = "loading remote context failed"
    assert said == [(code, f"{code}: https://dead.example/context: no such host")] * 3
