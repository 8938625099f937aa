"""What only the tantivy backend has: other processes and the end of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from quadloom.errors import StoreError, WarehouseLocked
from quadloom.model.text import TextDocument
from quadloom.stores.protocols.text import SearchRequest
from quadloom.stores.tantivy.index import TantivyText
from quadloom.stores.text_queries.synonyms import Synonyms


def test_a_reader_beside_the_writer_follows_its_commits(tmp_path: Path) -> None:
    writer = TantivyText(tmp_path)
    reader = TantivyText(tmp_path, read_only=True)
    assert len(reader) == 0
    writer.put([TextDocument(id="http://a.example/", title="Words")])
    writer.commit()
    assert reader.search(SearchRequest(text="words")).total == 1
    with pytest.raises(StoreError, match="reading only"):
        reader.put([TextDocument(id="x")])
    writer.close()


def test_readers_of_one_process_share_answers_until_the_next_commit(tmp_path: Path) -> None:
    asked = SearchRequest(text="words")
    writer = TantivyText(tmp_path)
    writer.put([TextDocument(id="http://a.example/", title="Words")])
    writer.commit()
    first, second = (TantivyText(tmp_path, read_only=True) for _ in range(2))
    answer = first.search(asked)
    assert second.search(asked) is answer and second.search(SearchRequest(text="words", limit=1)) is not answer
    assert TantivyText(tmp_path, read_only=True, synonyms=Synonyms({})).search(asked) is not answer
    writer.put([TextDocument(id="http://b.example/", title="Words")])
    writer.commit()
    assert [reader.search(asked).total for reader in (second, first, writer)] == [2, 2, 2]
    writer.close()


def test_urls_without_snippets_are_those_of_the_newest_commit(tmp_path: Path) -> None:
    """They are kept by address, and a commit gives addresses to others."""
    asked = SearchRequest(text="lighthouse", limit=1000, snippets=False)
    writer = TantivyText(tmp_path / "text")
    writer.put([TextDocument(id=f"http://a.example/{number}", title="lighthouse") for number in range(50)])
    writer.commit()
    reader = TantivyText(tmp_path / "text", read_only=True)
    for index in (writer, reader):
        for _ in range(2):
            assert {hit.id for hit in index.search(asked).hits} == {f"http://a.example/{n}" for n in range(50)}
    writer.remove([f"http://a.example/{number}" for number in range(0, 50, 2)])
    writer.put([TextDocument(id=f"http://b.example/{number}", title="lighthouse") for number in range(50)])
    writer.commit()
    expected = {f"http://a.example/{n}" for n in range(1, 50, 2)} | {f"http://b.example/{n}" for n in range(50)}
    for index in (writer, reader):
        for _ in range(2):
            found = index.search(asked).hits
            assert {hit.id for hit in found} == expected and len(found) == len(expected)
            assert [hit.id for hit in index.search(SearchRequest(text="lighthouse", limit=1000)).hits] == [
                hit.id for hit in found
            ]
    writer.close()


@pytest.mark.parametrize("word", ["हिन्दी", "Smørrebrød", "smorrebrod", "Привет", "naïve"])
def test_questions_are_read_as_documents_are(tmp_path: Path, word: str) -> None:
    index = TantivyText(tmp_path)
    index.put([TextDocument(id="x", body="हिन्दी में smørrebrød, ПРИВЕТ naive")])
    index.commit()
    assert index.search(SearchRequest(text=word)).total == 1
    assert index.search(SearchRequest(text=f'"{word}"')).total == 1
    index.close()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    writer = TantivyText(tmp_path)
    with pytest.raises(WarehouseLocked):
        TantivyText(tmp_path)
    writer.close()
    TantivyText(tmp_path).close()


def test_a_killed_writer_leaves_its_last_commit_and_no_lock(tmp_path: Path) -> None:
    script = """
        import os, signal, sys
        from pathlib import Path
        from quadloom.stores.protocols.text import TextDocument
        from quadloom.stores.tantivy.index import TantivyText
        index = TantivyText(Path(sys.argv[1]))
        index.put([TextDocument(id=f"http://a.example/{n}", title="kept") for n in range(50)])
        index.commit()
        index.put([TextDocument(id=f"http://b.example/{n}", title="lost") for n in range(50)])
        os.kill(os.getpid(), signal.SIGKILL)
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script), str(tmp_path)], timeout=60, check=False)
    assert ended.returncode == -9
    index = TantivyText(tmp_path)
    assert len(index) == 50
    index.put([TextDocument(id="http://c.example/", title="after")])
    index.commit()
    assert len(index) == 51
    index.close()


def test_no_index_and_a_foreign_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no text index"):
        TantivyText(tmp_path / "none", read_only=True)
    (tmp_path / "meta.json").write_text("not an index")
    with pytest.raises(StoreError, match="cannot use"):
        TantivyText(tmp_path)
