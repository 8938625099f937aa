"""`bench search --collection`: public formats, and measures that were computed by hand."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from quadloom.errors import UsageError
from quadloom_lab.benchmarks.search.collections import read_collection
from quadloom_lab.benchmarks.search.retrieval import MEASURES, retrieval

WINGS, TEA = ("Wings", "the lift of a wing in a slipstream"), ("Tea", "how to brew tea")


def smart(folder: Path) -> None:
    records = [f".I {number}\n.T\n{title}\n.A\nx\n.W\n{text}\n" for number, (title, text) in enumerate((WINGS, TEA), 1)]
    (folder / "cran.all.2.gz").write_bytes(gzip.compress("".join(records).encode()))
    (folder / "cran.qry").write_text(".I 001\n.W\nlift of wings\n.I 004\n.W\nunjudged\n.I 007\n.W\nbrewing tea\n")
    (folder / "cranqrel").write_text("1 1 1\n1 2 4\n3 2 -1\n")


def beir(folder: Path) -> None:
    documents = [
        {"_id": name, "title": title, "text": text} for name, (title, text) in zip("ab", (WINGS, TEA), strict=True)
    ]
    (folder / "corpus.jsonl").write_text("\n".join(map(json.dumps, documents)))
    questions = [{"_id": "q1", "text": "lift of wings"}, {"_id": "q2", "text": "brewing tea"}]
    (folder / "queries.jsonl").write_text("\n".join(map(json.dumps, questions)))
    (folder / "qrels").mkdir()
    (folder / "qrels" / "dev.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tb\t1\n")
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta\t2\nq2\tb\t1\nq2\ta\t0\n")


def test_smart_with_the_grades_and_numbers_of_cranfield(tmp_path: Path) -> None:
    smart(tmp_path)
    found = read_collection(tmp_path)
    assert [(one.id, one.title, one.text) for one in found.documents] == [("1", *WINGS), ("2", *TEA)]
    assert [(one.id, one.text) for one in found.questions] == [("1", "lift of wings"), ("3", "brewing tea")]
    assert found.gains == {"1": {"1": 4, "2": 1}, "3": {"2": 4}}


def test_beir_takes_the_judgements_of_the_test_split(tmp_path: Path) -> None:
    beir(tmp_path)
    found = read_collection(tmp_path)
    assert [one.id for one in found.questions] == ["q1", "q2"]
    assert found.gains == {"q1": {"a": 2}, "q2": {"b": 1, "a": 0}}


def test_a_folder_without_a_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        read_collection(tmp_path)


def test_every_engine_is_measured_on_the_same_questions(tmp_path: Path) -> None:
    beir(tmp_path)
    own, *others = retrieval(read_collection(tmp_path))
    assert [own.engine, *(other.engine for other in others)] == ["quadloom", "fts5 porter", "tantivy"]
    assert all(own.measures[measure].mean == 1.0 for measure in MEASURES) and not own.unanswered
    for other in others:
        assert other.ahead["MRR"].mean == pytest.approx(1.0 - other.measures["MRR"].mean)
        assert other.ahead["MRR"].low <= other.ahead["MRR"].mean <= other.ahead["MRR"].high
