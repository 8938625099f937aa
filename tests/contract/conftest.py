"""One fixture per seam, parametrised over the backends listed in `contract_backends`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from contract_backends import STATES, State


@pytest.fixture(params=STATES)
def state(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[State]:
    made = STATES[request.param](tmp_path)
    yield made
    made.close()
