"""`quadloom bench audit`: precision, recall and CPU time of the checks, with a validator from npm beside them."""

from __future__ import annotations

import time
from itertools import islice
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec

from quadloom.asking.audit.across_pages import audited_pages
from quadloom.asking.audit.report import PageFindings
from quadloom.asking.audit.source_lines import archived
from quadloom.cli.session import session
from quadloom.documents.checks.vocabulary import vocabularies
from quadloom.documents.transform import transform
from quadloom.model.finding import Finding
from quadloom.settings import Settings
from quadloom.warehouse import Warehouse
from quadloom_lab.audit.descriptions import description
from quadloom_lab.audit.foreign_pages import PAGES
from quadloom_lab.audit.mistakes import MISTAKES, Planted, planted
from quadloom_lab.audit.published_pages import PUBLISHED
from quadloom_lab.audit.rival import alarms, finds, run_rival
from quadloom_lab.audit.sample import drawn, shares, verdicts
from quadloom_lab.audit.shacl_rival import flagged
from quadloom_lab.markup import SYNTAXES, page
from quadloom_lab.realweb.web import RealWeb

_URL = "https://shop.example/things/1"
_ROUNDS = 4
_QUOTED = 60  # characters of a source at most
_WISHES = frozenset(("schema-missing-required", "data-not-visible"))


class _Page(NamedTuple):
    """`mistake` is None on a correct page."""

    text: str
    syntax: str
    mistake: Planted | None


def audit(
    *, mistakes: int = 20, types: int = 300, documents: int = 100, rival: Path | None = None, shacl: bool = False
) -> None:
    """Check correct pages and pages with one planted mistake; print what was found and what was a false alarm.

    Parameters
    ----------
    mistakes
        mistakes of each kind, each in three syntaxes
    types
        correct descriptions, each of another type and in three syntaxes
    documents
        pages as the web has them, for CPU time
    rival
        folder whose node_modules has @adobe/structured-data-validator and @marbec/web-auto-extractor
    shacl
        pySHACL beside it, with shapes made of schema.org's domains and ranges
    """
    s = session()
    schema = vocabularies().schema
    pages = [*_correct(types), *_faulty(mistakes)]
    ours, cpu = _ours(pages)
    theirs = run_rival(rival, schema, [one.text for one in pages]) if rival is not None else None
    shaped = flagged(schema, [one.text for one in pages]) if shacl else None
    rows: list[tuple[object, ...]] = []
    for kind in ("", *MISTAKES):
        numbers = [number for number, one in enumerate(pages) if (one.mistake.kind if one.mistake else "") == kind]
        row: list[object] = [kind or "correct pages: false alarms", len(numbers)]
        row.append(sum(_is_found(pages[number], ours[number]) for number in numbers))
        if theirs is not None:
            given = [(pages[number].mistake, theirs.answers[number]) for number in numbers]
            row.append(sum(finds(mistake, said) if mistake else alarms(said) for mistake, said in given))
        if shaped is not None:
            row.append(sum(shaped.pages[number] for number in numbers))
        rows.append(tuple(row))
    names = ["mistake", "pages", "quadloom"] + (["rival"] if theirs is not None else [])
    names += ["pySHACL"] if shaped is not None else []
    sums = [sum(int(str(row[place])) for row in rows[1:]) for place in range(1, len(names))]
    s.table(names, [*rows, ("all mistakes", *sums)])
    if shaped is not None:
        s.print(f"CPU-ms of pages of one thing, all in one graph: pySHACL {shaped.cpu:.2f}")
    real = _real(documents)
    costs = [("pages of one thing", cpu, theirs.cpu if theirs is not None else None)]
    _, cpu = _ours(real)
    theirs = run_rival(rival, schema, [one.text for one in real]) if rival is not None else None
    size = sum(len(one.text) for one in real) / max(1, len(real)) / 1e3
    costs.append((f"pages of {size:.0f} KB", cpu, theirs.cpu if theirs is not None else None))
    with_checks, without = _by_turns(real)
    share = 100 * (with_checks / without - 1)
    s.print(f"CPU-ms of pages of {size:.0f} KB: {with_checks:.2f} with checks, {without:.2f} without: {share:+.1f} %")
    for name, mine, other in costs:
        s.print(f"CPU-ms of {name}: {mine:.2f}" + (f", rival {other:.2f}" if other is not None else ""))
    right, useful = shares(judged := verdicts())
    s.print(f"{len(judged)} findings of real sites, judged by a reader: {right:.2f} true, {useful:.2f} useful")


def audit_sample(*warehouses: Path, seed: str, count: int = 100) -> None:
    """Draw findings of real sites for a reader to judge, as lines of judged.tsv.

    Parameters
    ----------
    warehouses
        warehouses of the sites
    seed
        what decides which are drawn, such as the hash of the commit
    count
        findings to draw
    """
    s = session()
    pages: list[PageFindings] = []
    bodies: dict[str, bytes] = {}
    for folder in warehouses:
        with Warehouse.read(folder, settings=s.settings) as warehouse:
            found = [page for page in audited_pages(warehouse.stores) if page.findings]
            bodies |= {page.row.href: archived(warehouse.stores)(page.row.href) for page in found}
            pages += found
    names = ("seed", "page", "line", "code", "path", "quoted", "is_true", "is_useful", "why")
    s.write("\t".join(names))
    for url, finding in drawn(pages, seed, count):
        lines = bodies[url].decode("utf-8", "replace").splitlines()
        line = lines[finding.line - 1] if 0 < finding.line <= len(lines) else ""
        at = max(0, finding.column - 1)
        quoted = " ".join(line[at : at + _QUOTED].split()) or finding.message[:_QUOTED]
        row = (seed[:12], url, str(finding.line), finding.code, finding.path, quoted, "", "", "")
        s.write("\t".join(" ".join(cell.split()) for cell in row))


def _real(documents: int) -> list[_Page]:
    """Pages as the web has them, with or without data."""
    pages = (one for one in RealWeb(2 * documents, hosts=4, seed=9).pages() if one.kind == "html")
    return [_Page(one.body.decode("utf-8", "replace"), "", None) for one in islice(pages, documents)]


def _correct(types: int) -> list[_Page]:
    schema = vocabularies().schema
    names = sorted(name for name in schema.types if "Thing" in schema.ancestors(name) and name not in schema.superseded)
    chosen = Random(1).sample(names, min(types, len(names)))
    return [
        _Page(page(description(schema, name, Random(name)), syntax), syntax, None)
        for name in chosen
        for syntax in SYNTAXES
    ] + [_Page(one.text, "", None) for one in (*PAGES, *PUBLISHED) if one.content_type == "text/html"]


def _faulty(mistakes: int) -> list[_Page]:
    schema = vocabularies().schema
    made = [one for kind in MISTAKES for seed in range(mistakes) if (one := planted(schema, kind, seed)) is not None]
    return [_Page(page(one.thing, syntax), syntax, one) for one in made for syntax in SYNTAXES]


def _ours(pages: list[_Page]) -> tuple[list[tuple[Finding, ...]], float]:
    """Findings by page, and CPU-ms a page for all that transform does."""
    settings = Settings()
    settings = msgspec.structs.replace(settings, audit=msgspec.structs.replace(settings.audit, places="all"))

    def check(one: _Page) -> tuple[Finding, ...]:
        return transform(one.text.encode(), url=_URL, content_type="text/html", settings=settings).findings

    for one in pages[:50]:
        check(one)
    started = time.process_time()
    found = [check(one) for one in pages]
    return found, (time.process_time() - started) / len(pages) * 1e3


def _by_turns(pages: list[_Page]) -> tuple[float, float]:
    """CPU-ms a page of transform with the checks and without, by turns; the best of several rounds of each page."""
    on = Settings()
    off = msgspec.structs.replace(on, audit=msgspec.structs.replace(on.audit, checks=False))
    best = [[float("inf"), float("inf")] for _ in pages]
    for turn in range(_ROUNDS):
        for number, one in enumerate(pages):
            body = one.text.encode()
            for which, settings in ((0, on), (1, off)) if (number + turn) % 2 else ((1, off), (0, on)):
                started = time.process_time()
                transform(body, url=_URL, content_type="text/html", settings=settings)
                best[number][which] = min(best[number][which], time.process_time() - started)
    return sum(one[0] for one in best) / len(pages) * 1e3, sum(one[1] for one in best) / len(pages) * 1e3


def _is_found(one: _Page, findings: tuple[Finding, ...]) -> bool:
    """A mistake must have its code and line; a correct page must have no defect."""
    if one.mistake is None:
        return any(finding.severity != "info" and finding.code not in _WISHES for finding in findings)
    lines = {number for number, line in enumerate(one.text.split("\n"), 1) if one.mistake.token in line}
    return any(finding.code == one.mistake.code and finding.line in lines for finding in findings)
