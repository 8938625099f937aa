"""schemathesis against `/openapi.json`: what the description forbids is refused, what comes back is described, methods
and tokens are as said, and nothing meets a defect. Long, hence slow; `tests/unit/web/test_routes.py` has a short
relative of it for every run.

One of its checks is left out: that all data of the right type is accepted. Queries, dates, IRIs and marks have grammars
which JSON Schema cannot say, so a random text is rightly refused.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
import uvicorn
from hypothesis import HealthCheck, settings

from quadloom.settings import Settings, WebSettings
from quadloom.web.api.openapi import describe
from quadloom.web.app import create_app
from quadloom.web.routes import ROUTES
from quadloom.web.server.state import SiteState
from quadloom.web.server.tokens import FILE, Tokens
from thoroughness import examples
from unit.web.web_fixture import fill
from waiting import wait_until

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed: pip install 'quadloom[dev]'")
openapi_checks = pytest.importorskip("schemathesis.specs.openapi.checks")
pytestmark = pytest.mark.slow


class Site(NamedTuple):
    base: str
    headers: dict[str, str]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A real server: it sees the requests as a client writes them, odd bytes included."""
    path = tmp_path_factory.mktemp("schema") / "data"
    fill(path)
    token = Tokens(path / FILE).make("tests")
    app = create_app(SiteState(path, Settings(web=WebSettings(rate=0, concurrency=0)), may_control=True))
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    wait_until(lambda: server.started)
    yield Site(f"http://127.0.0.1:{listening.getsockname()[1]}", {"Authorization": f"Bearer {token}"})
    server.should_exit = True
    thread.join(timeout=20)


# An event stream has no end; tests/unit/web read them with `once`.
schema = schemathesis.openapi.from_dict(describe(ROUTES)).exclude(path=["/events", "/changes/events"])


@schema.parametrize()  # type: ignore[untyped-decorator]
@settings(max_examples=examples(20, 200), deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_every_described_operation_holds_its_promise(case: Any, site: Site) -> None:
    if case.path.startswith("/inspect"):
        case.query.pop("url", None)  # no test leaves this machine
    excluded = [openapi_checks.positive_data_acceptance]
    if case.path == "/sparql":
        excluded.append(openapi_checks.unsupported_method)  # QUERY, for which OpenAPI 3.1 has no word
    case.call_and_validate(base_url=site.base, headers=site.headers, timeout=30, excluded_checks=excluded)
