"""Build a compact table of a published JSON-LD context for `quadloom/documents/syntaxes/jsonld/contexts/`.

    python tools/build_contexts.py CONTEXT.jsonld NAME --url URL --source "title, version, licence"

The context is processed once, by the project's own implementation, and its terms are grouped by what they have in
common. The script refuses contexts with features that the table cannot hold (scoped contexts, languages, nesting), and
proves that the table gives back exactly the terms of the published context before it writes anything.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from quadloom.documents.syntaxes.jsonld import json as jsonld_json
from quadloom.documents.syntaxes.jsonld.context import ContextProcessor, RemoteContext
from quadloom.documents.syntaxes.jsonld.contexts import TermGroup, TermTable, active_context
from quadloom.documents.syntaxes.jsonld.terms import UNSET, ActiveContext, TermDefinition

FOLDER = Path(__file__).resolve().parents[1] / "src" / "quadloom" / "documents" / "syntaxes" / "jsonld" / "contexts"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("context", type=Path)
    parser.add_argument("name")
    parser.add_argument("--url", required=True)
    parser.add_argument("--source", required=True)
    arguments = parser.parse_args()
    table = build(arguments.context.read_bytes(), arguments.url, arguments.source)
    target = FOLDER / f"{arguments.name}.json"
    target.write_bytes(msgspec.json.format(msgspec.json.encode(table), indent=1) + b"\n")
    print(f"{target.name}: {target.stat().st_size} bytes, {len(active_context(table).terms)} terms")
    return 0


def build(document: bytes, url: str, source: str) -> TermTable:
    parsed = jsonld_json.read(document)
    if not isinstance(parsed, dict) or "@context" not in parsed:
        raise SystemExit("no @context at the top")
    context = ContextProcessor(_refuse).process(ActiveContext(None), parsed["@context"], url)
    if context.language is not None or context.direction is not None or context.protects:
        raise SystemExit("the table holds no languages, directions or protected terms")
    groups: dict[tuple[str, str | None, tuple[str, ...], bool], list[str]] = {}
    other: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    for name, term in context.terms.items():
        _check(name, term)
        iri = term.iri or ""
        if iri.endswith(name) and not iri.startswith("@"):
            key = (iri[: -len(name)], term.type, tuple(sorted(term.container)), term.prefix)
            groups.setdefault(key, []).append(name)
        elif term.type is None and not term.container:
            (prefixes if term.prefix else other)[name] = iri
        else:
            raise SystemExit(f"{name}: a typed term whose IRI does not end with its name")
    table = TermTable(
        source=source,
        url=url,
        vocab=context.vocab,
        groups=tuple(
            TermGroup(namespace=namespace, names=" ".join(names), type=kind, container=container, prefix=prefix)
            for (namespace, kind, container, prefix), names in groups.items()
        ),
        other=other,
        prefixes=prefixes,
    )
    _prove(context, active_context(table))
    return table


def _check(name: str, term: TermDefinition) -> None:
    scoped = term.context is not UNSET or term.nest is not None or term.index is not None
    if scoped or term.reverse or term.iri is None or term.language is not UNSET or term.direction is not UNSET:
        raise SystemExit(f"{name}: has a feature that the table cannot hold")


def _prove(published: ActiveContext, rebuilt: ActiveContext) -> None:
    if published.vocab != rebuilt.vocab or published.terms.keys() != rebuilt.terms.keys():
        raise SystemExit("the table lost terms")
    for name, term in published.terms.items():
        if not term.same_as(rebuilt.terms[name]):
            raise SystemExit(f"{name}: the table changed it")


def _refuse(url: str) -> RemoteContext:
    raise SystemExit(f"the context loads another one: {url}")


if __name__ == "__main__":
    sys.exit(main())
