"""A small warehouse of three pages, written by the real stores."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from quadloom.asking.sparql.service import QueryService
from quadloom.model.quads import Quads
from quadloom.model.text import TextDocument
from quadloom.settings import LimitSettings
from quadloom.stores.protocols.queries import QuerySource
from quadloom.stores.quads.oxigraph import OxigraphQuads
from quadloom.stores.tantivy.index import TantivyText

A, B, C = "http://a.example/1", "http://b.example/2", "http://c.example/3"
SCHEMA, OWL = "http://schema.org/", "http://www.w3.org/2002/07/owl#"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def quads(graph: str, *triples: str) -> Quads:
    return Quads.of(graph, "".join(sorted(f"{triple} <{graph}> .\n" for triple in triples)).encode())


PAGES = (
    quads(
        A,
        f"<{A}#x> {TYPE} <{SCHEMA}Event>",
        f'<{A}#x> <{SCHEMA}name> "Opera \\"night\\""@en',
        f'<{A}#x> <{SCHEMA}startDate> "2026-05-01"',
        f"<{A}#x> <{OWL}sameAs> <{B}#x>",
    ),
    quads(
        B,
        f"<{B}#x> {TYPE} <https://schema.org/Event>",
        f'<{A}#x> <{SCHEMA}startDate> "2026-05-02"',
        f'<{B}#x> <{SCHEMA}name> "Opernnacht"@de',
        f"<{B}#x> <{SCHEMA}organizer> <{A}#x>",
    ),
    quads(C, f'<{C}> <http://purl.org/dc/terms/title> "Tab\\there, comma"', f'<{C}> <urn:x:n> "7"^^<urn:x:t>'),
)
DOCUMENTS = (
    TextDocument(id=A, title="Opera night", body="An opera by the sea.", types=(SCHEMA + "Event",), site="a.example",
                 vocabularies=(SCHEMA,), language="en", kind="html", fetched_at=1.7e9),
    TextDocument(id=B, title="Opernnacht", body="Eine Oper, an opera.", types=("https://schema.org/Event",),
                 site="b.example", vocabularies=(SCHEMA,), language="de", kind="html", fetched_at=1.6e9),
    TextDocument(id=C, title="Nothing", body="A lighthouse.", site="c.example", language="en", kind="turtle",
                 fetched_at=1.5e9),
)  # fmt: skip


class Stores:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.quads = OxigraphQuads(folder / "quads")
        self.text = TantivyText(folder / "text")
        self.quads.insert_new(PAGES)
        self.text.put(DOCUMENTS)
        self.text.commit()


@pytest.fixture(scope="package")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stores]:
    made = Stores(tmp_path_factory.mktemp("asking"))
    yield made
    made.text.close()
    made.quads.close()


@pytest.fixture(scope="package")
def service(stores: Stores) -> Iterator[QueryService]:
    limits = LimitSettings(query_seconds=3.0, query_bytes=1 << 30, query_rows=1000)
    with QueryService(
        QuerySource(str(stores.folder / "quads")), limits, text=stores.text, processes=2, concurrency=2
    ) as made:
        yield made
