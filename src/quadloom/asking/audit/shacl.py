"""All of SHACL over the pages of a warehouse or a folder: a second pass by pySHACL, in a child that can be killed.

The fast subset (`documents.checks.shapes`) runs while pages are read, and knows their lines. This pass needs the extra
`shacl`, and knows the whole language: paths, logic, closed shapes, SPARQL constraints. Both read the same file. Each
page is a data graph of its own, so that a result belongs to a page.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from quadloom.asking.audit.report import PageFindings
from quadloom.errors import SettingsError
from quadloom.model.finding import Finding, Severity
from quadloom.process import limits
from quadloom.process.channel import Channel, run, start
from quadloom.process.request_child import ChildEnded, RequestChild

CODE = "shacl-violation"
_SECONDS, _START_SECONDS = 60, 30.0  # for one page, and for the imports
_BYTES = 1 << 30
_BLANK = re.compile(r"<urn:quadloom:blank:([0-9A-Za-z_-]+)>")
_SEVERITY: dict[str, Severity] = {"Violation": "error", "Warning": "warning", "Info": "info"}


class _Result(msgspec.Struct, frozen=True):
    focus: str
    path: str
    value: str
    component: str
    severity: str
    message: str
    type: str


class _Answer(msgspec.Struct, frozen=True):
    results: tuple[_Result, ...] = ()
    failure: str = ""


def with_shapes(
    pages: Iterable[PageFindings], shapes: Iterable[Path], graph: Callable[[str], bytes]
) -> Iterator[PageFindings]:
    """The pages with what keeps to no shape. `graph`: the N-Quads of a page by the name of its graph. A result that the
    fast subset has found already, with its line, stays as it is. Raises `SettingsError` without pySHACL, or for shapes
    that it cannot read."""
    if find_spec("pyshacl") is None:
        raise SettingsError("--shapes needs pySHACL, which is not installed", hint="pip install 'quadloom[shacl]'")
    text = "\n".join(_read(path) for path in shapes)
    space = _BYTES * 2
    child = RequestChild(lambda: start(__name__, text, address_space=space, stderr=subprocess.DEVNULL))
    try:
        for page in pages:
            yield PageFindings(page.row, (*page.findings, *_new(child, page, graph(page.row.graph))))
    finally:
        child.end()


def _read(path: Path) -> str:
    try:
        return _folded(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"the shapes {path} cannot be read: {error}", hint="--shapes takes Turtle files") from None


def _new(child: RequestChild, page: PageFindings, data: bytes) -> Iterator[Finding]:
    if not data:
        return
    known = {one.path.rpartition(" › ")[2] for one in page.findings if one.code == CODE}
    try:
        answer = child.ask(data, _Answer, seconds=_SECONDS + _START_SECONDS)
    except ChildEnded as ended:
        message = f"the shapes could not be checked: {ended.describe(_SECONDS, _BYTES)}"
        yield Finding("checks-failed", message, "error", "index", advice="simplify the shapes, or the page")
        return
    if answer.failure:
        raise SettingsError(f"the shapes cannot be used: {answer.failure}", hint="--shapes takes SHACL in Turtle")
    for one in answer.results:
        name = _local(one.path)
        if not name or name not in known:
            yield _finding(one, name)


def _finding(one: _Result, name: str) -> Finding:
    kind = _local(one.type) or "item"
    rule = _local(one.component).removesuffix("ConstraintComponent")
    return Finding(
        CODE,
        one.message[:300] or f"{name or kind} does not keep to sh:{rule}",
        _SEVERITY.get(_local(one.severity), "error"),
        "index",
        advice=f"make {name or kind} fit the shape",
        syntax="shacl",
        path=f"{kind} › {name}" if name else kind,
        type=kind,
        found=(one.value or one.focus)[:120],
        expected=f"sh:{rule}",
    )


def _local(iri: str) -> str:
    return re.split(r"[/#]", iri)[-1]


def _folded(text: str) -> str:
    return text.replace("https://schema.org/", "http://schema.org/")


def serve(channel: Channel) -> None:
    """The child: shapes first, then one page after another."""
    text = channel.receive(str)
    from pyshacl import validate
    from rdflib import RDF, Graph, Namespace

    sh = Namespace("http://www.w3.org/ns/shacl#")
    shapes, failure = Graph(), ""
    try:
        shapes.parse(data=text, format="turtle")
    except Exception as error:  # noqa: BLE001 - whatever the parser says of a user's file
        failure = f"{type(error).__name__}: {error}"[:300]
    while True:
        data = channel.receive(bytes)
        if failure:
            channel.send(_Answer(failure=failure))
            continue
        limits.limit_time(_SECONDS)
        graph = _graph_of(_BLANK.sub(r"_:b\1", _folded(data.decode("utf-8", "replace"))))
        try:
            _, report, _ = validate(graph, shacl_graph=shapes, advanced=True, js=False)
        except Exception as error:  # noqa: BLE001 - whatever pySHACL says of a user's file
            channel.send(_Answer(failure=f"{type(error).__name__}: {error}"[:300]))
            continue
        results = []
        for result in report.subjects(RDF.type, sh.ValidationResult):
            focus = report.value(result, sh.focusNode)
            said = {
                field: str(report.value(result, sh[name]) or "")
                for field, name in (
                    ("path", "resultPath"),
                    ("value", "value"),
                    ("component", "sourceConstraintComponent"),
                    ("severity", "resultSeverity"),
                    ("message", "resultMessage"),
                )
            }
            results.append(_Result(focus=str(focus), type=str(graph.value(focus, RDF.type) or ""), **said))
        results.sort(key=lambda one: (one.path, one.component, one.focus, one.value))
        limits.set_alarm(0)
        channel.send(_Answer(tuple(results)))


def _graph_of(nquads: str) -> Any:
    """All statements in one graph of rdflib. If it refuses a term, which RDF 1.1 may allow, that line is left out."""
    from rdflib import Dataset, Graph

    whole = Dataset()
    try:
        whole.parse(data=nquads, format="nquads")
    except Exception:  # noqa: BLE001 - whatever the parser says of a page
        lines = nquads.splitlines()
        if len(lines) == 1:
            return Graph()
        half = len(lines) // 2  # blank nodes keep their labels, so parts can be joined
        return _graph_of("\n".join(lines[:half])) + _graph_of("\n".join(lines[half:]))
    graph = Graph()
    for subject, predicate, value, _ in whole.quads():
        graph.add((subject, predicate, value))
    return graph


if __name__ == "__main__":
    run(serve)
