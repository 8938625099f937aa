"""`quadloom bench search`: does search find the page that a person has in mind, in every language?"""

from __future__ import annotations

from pathlib import Path

from quadloom.cli.session import Session, session
from quadloom.errors import UsageError
from quadloom_lab.benchmarks.search.collections import read_collection
from quadloom_lab.benchmarks.search.evaluation import SearchQuality, evaluate
from quadloom_lab.benchmarks.search.known_items import KINDS, lexicons
from quadloom_lab.benchmarks.search.retrieval import MEASURES, Estimate, retrieval
from quadloom_lab.benchmarks.search.scale import query_times


def search(
    *, language: tuple[str, ...] = (), questions: int = 40, seed: int = 1, documents: int = 0, collection: str = ""
) -> None:
    """Ask known-item questions in ten languages, beside SQLite FTS5 and plain tantivy on the same texts.

    Prints mean reciprocal rank (MRR) and the share of questions with the right page first and among the first five.

    Parameters
    ----------
    language
        only this language, by its code; may be repeated
    questions
        questions of each kind and language
    seed
        seed of pages and questions
    documents
        instead, measure the time of a query on this many generated documents; 300000 take some minutes
    collection
        instead, ask the questions of the test collection in this folder (BEIR's or SMART's format), and print nDCG@10,
        MAP, MRR and recall@100 with confidence intervals
    """
    s = session()
    if collection:
        _print_retrieval(s, Path(collection), seed)
        return
    if documents:
        _print_times(s, documents)
        return
    unknown = [name for name in language if name not in lexicons()]
    if unknown or questions < 2:
        raise UsageError(
            f"no word list for {unknown[0]!r}" if unknown else "questions must be at least 2",
            hint=f"languages: {', '.join(lexicons())}; the default of questions is 40",
        )
    found = evaluate(languages=language, questions=questions, seed=seed, progress=s.say)
    if s.json:
        s.emit(found)
        return
    s.table(("language", "engine", *(f"{kind} MRR/1/5" for kind in (*KINDS, "all"))), _rows(found))
    s.table(
        ("engine", "CPU-ms per query", "p95", "bytes per page"),
        [(c.engine, f"{c.cpu_ms:.2f}", f"{c.cpu_ms_p95:.2f}", f"{c.bytes_per_page:.0f}") for c in found.costs],
    )


def _rows(found: SearchQuality) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for language in dict.fromkeys(score.language for score in found.scores):
        for cost in found.costs:
            scores = [found.score(cost.engine, language, kind) for kind in (*KINDS, "all")]
            rows.append((language, cost.engine, *(f"{s.mrr:.2f}/{s.first:.2f}/{s.five:.2f}" for s in scores)))
    return rows


def _print_retrieval(s: Session, folder: Path, seed: int) -> None:
    collected = read_collection(folder)
    found = retrieval(collected, seed=seed, progress=s.say)
    if s.json:
        s.emit({"documents": len(collected.documents), "questions": len(collected.questions), "engines": found})
        return
    s.table(
        ("engine", *MEASURES, "without answer", "CPU-ms", "p95"),
        [
            (
                one.engine,
                *(_estimated(one.measures[measure]) for measure in MEASURES),
                str(one.unanswered),
                f"{one.cpu_ms:.1f}",
                f"{one.cpu_ms_p95:.1f}",
            )
            for one in found
        ],
    )
    s.table(
        ("quadloom ahead of", *MEASURES),
        [(one.engine, *(_estimated(one.ahead[measure], "+.3f") for measure in MEASURES)) for one in found[1:]],
    )


def _estimated(value: Estimate, digits: str = ".3f") -> str:
    return f"{value.mean:{digits}} ({value.low:{digits}} … {value.high:{digits}})"


def _print_times(s: Session, documents: int) -> None:
    rows = query_times(documents, progress=s.say)
    if s.json:
        s.emit({"documents": documents, "times": rows})
        return
    s.table(
        ("question", "CPU-ms p50", "CPU-ms p95", "clock-ms p95"),
        [(row.kind, f"{row.cpu_p50:.2f}", f"{row.cpu_p95:.2f}", f"{row.clock_p95:.2f}") for row in rows],
    )
