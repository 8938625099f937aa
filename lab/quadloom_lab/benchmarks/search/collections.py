"""Public test collections: documents, questions, and judgements of which documents answer a question how well.

BEIR's format: `corpus.jsonl`, `queries.jsonl` and `qrels/*.tsv` (the file of the test split, if there are several).
SMART's, as Cranfield, CISI and MEDLINE come: `*.all*`, `*.qry*` and `*rel*` or `*.rel*`, gzipped or not. Cranfield's
grades count down from 1 (a complete answer) to 4, and its questions are numbered by their order.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from quadloom.errors import UsageError

_CRANFIELD_GAIN = {1: 4, 2: 3, 3: 2, 4: 1, -1: 4}
_SMART_FIELD = re.compile(r"^\.([A-Z])\s*\n", re.MULTILINE)
_SMART_RECORD = re.compile(r"^\.I (?=\d+\s)", re.MULTILINE)


class Judged(msgspec.Struct, frozen=True):
    """A document or a question."""

    id: str
    title: str
    text: str


class Collection(msgspec.Struct, frozen=True):
    """`gains`: by question and document, 0 = of no use. Questions without judgements are left out."""

    documents: tuple[Judged, ...]
    questions: tuple[Judged, ...]
    gains: dict[str, dict[str, int]]


class _BeirRecord(msgspec.Struct):
    _id: str
    text: str = ""
    title: str = ""


def read_collection(folder: Path) -> Collection:
    """Raises `UsageError` if the folder has no collection in a format that is known."""
    found = _beir(folder) if (folder / "corpus.jsonl").is_file() else _smart(folder)
    judged = {question: gains for question, gains in found.gains.items() if any(gains.values())}
    questions = tuple(question for question in found.questions if question.id in judged)
    if not questions or not found.documents:
        raise UsageError(f"{folder} has no questions with judgements", hint="see `quadloom bench search --help`")
    return Collection(found.documents, questions, judged)


def _beir(folder: Path) -> Collection:
    judgements = sorted((folder / "qrels").glob("*.tsv"), key=lambda file: (file.stem != "test", file.name))
    if not judgements:
        raise UsageError(f"{folder} has no qrels/*.tsv", hint="BEIR's archives have them: unpack one as it is")
    gains: dict[str, dict[str, int]] = {}
    for line in judgements[0].read_text(encoding="utf-8").splitlines()[1:]:
        question, document, grade = line.split("\t")[:3]
        gains.setdefault(question, {})[document] = int(grade)
    return Collection(_records(folder / "corpus.jsonl"), _records(folder / "queries.jsonl"), gains)


def _records(file: Path) -> tuple[Judged, ...]:
    decoder = msgspec.json.Decoder(_BeirRecord)
    with file.open("rb") as lines:
        found = [decoder.decode(line) for line in lines if line.strip()]
    return tuple(Judged(record._id, record.title, record.text) for record in found)


def _smart(folder: Path) -> Collection:
    files = sorted(file for file in folder.iterdir() if file.is_file()) if folder.is_dir() else []
    documents = _one_of(files, folder, r"\.all")
    questions = _one_of(files, folder, r"\.qry")
    judgements = _one_of(files, folder, r"rel(\.gz|\.txt)?$")
    cranfield = judgements.name.lower().startswith("cran")
    gains: dict[str, dict[str, int]] = {}
    for line in _content(judgements).splitlines():
        numbers = line.split()
        if len(numbers) >= 2:
            grade = _CRANFIELD_GAIN.get(int(numbers[2]), 0) if cranfield else 1
            gains.setdefault(str(int(numbers[0])), {})[str(int(numbers[1]))] = grade
    asked = list(_smart_records(questions))
    if cranfield:
        asked = [msgspec.structs.replace(one, id=str(number)) for number, one in enumerate(asked, 1)]
    return Collection(tuple(_smart_records(documents)), tuple(asked), gains)


def _smart_records(file: Path) -> Iterator[Judged]:
    for record in _SMART_RECORD.split(_content(file))[1:]:
        number, _, rest = record.partition("\n")
        parts = _SMART_FIELD.split(rest)
        fields = dict(zip(parts[1::2], parts[2::2], strict=True))
        yield Judged(number.strip(), " ".join(fields.get("T", "").split()), " ".join(fields.get("W", "").split()))


def _one_of(files: list[Path], folder: Path, pattern: str) -> Path:
    for file in files:
        if re.search(pattern, file.name, re.IGNORECASE):
            return file
    raise UsageError(
        f"{folder} has no file whose name matches {pattern}",
        hint="a collection has corpus.jsonl (BEIR), or files named like cran.all, cran.qry and cranqrel (SMART)",
    )


def _content(file: Path) -> str:
    data = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return data.decode("utf-8", "replace").replace("\r", "")
