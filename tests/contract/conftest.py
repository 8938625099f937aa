"""One fixture per seam, parametrised over the backends listed in `contract_backends`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_backends import (
    ARCHIVES,
    BUSES,
    CLUSTERS,
    QUAD_STORES,
    STATES,
    TEXT_INDEXES,
    Files,
    Machines,
    Place,
    Shelf,
    State,
)

from quadloom.stores.memory_bus import MemoryBus
from quadloom.stores.postgres.bus import PostgresBus


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[State]:
    made = STATES[request.param](tmp_path)
    yield made
    made.close()


@pytest.fixture(params=ARCHIVES)
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Files]:
    made = ARCHIVES[request.param](tmp_path)
    yield made
    made.archive.close()


@pytest.fixture(params=BUSES)
def bus(request: pytest.FixtureRequest) -> Iterator[MemoryBus | PostgresBus]:
    made = BUSES[request.param]()
    yield made
    made.close()


@pytest.fixture(params=CLUSTERS)
def machines(request: pytest.FixtureRequest) -> Iterator[Machines]:
    made = CLUSTERS[request.param]()
    yield made
    made.close()


@pytest.fixture(params=QUAD_STORES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    made = QUAD_STORES[request.param](tmp_path)
    yield made
    made.quads.close()


@pytest.fixture(params=TEXT_INDEXES)
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    made = TEXT_INDEXES[request.param](tmp_path)
    yield made
    made.text.close()
