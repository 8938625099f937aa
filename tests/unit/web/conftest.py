"""The site over the small warehouse of `web_fixture`."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from httpx2 import Response

from quadloom.settings import Settings, WebSettings
from quadloom.web.app import create_app
from quadloom.web.server.state import SiteState
from quadloom.web.server.tokens import FILE, Tokens
from unit.web.web_fixture import fill

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


class PatientClient(TestClient):
    """Asks again while the server says that it is too busy, as a client shall: on a loaded machine it may be."""

    def request(self, *given: Any, **options: Any) -> Response:
        while (answer := super().request(*given, **options)).status_code == 503 and "too busy right now" in answer.text:
            time.sleep(float(answer.headers["retry-after"]))
        return answer


@pytest.fixture(scope="session")
def warehouse_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("web") / "data"
    fill(path)
    return path


@pytest.fixture(scope="session")
def token(warehouse_path: Path) -> str:
    return Tokens(warehouse_path / FILE).make("tests")


@pytest.fixture(scope="session")
def client(warehouse_path: Path, token: str) -> Iterator[TestClient]:
    """A server that may control, without a limit on the rate."""
    settings = Settings(web=WebSettings(rate=0.0, concurrency=0))
    site = SiteState(warehouse_path, settings, may_control=True)
    with PatientClient(create_app(site), base_url="http://127.0.0.1:7272", follow_redirects=False) as client:
        yield client
