"""The route table as a whole: described, refused in one shape, safe on arbitrary input."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from quadloom.errors import QuadloomError, QuerySyntaxError
from quadloom.settings import Settings, WebSettings
from quadloom.web import routes as table
from quadloom.web.app import create_app
from quadloom.web.routes import ROUTES, Endpoint
from quadloom.web.server.errors import status_of
from quadloom.web.server.state import SiteState
from thoroughness import examples
from unit import ROOT

HTTP_METHODS = ("GET", "POST", "PUT", "DELETE", "PATCH")


def filled(path: str) -> str:
    return re.sub(r"\{[^}]*\}", "x", path)


def is_error(answer: object, status: int) -> bool:
    return (
        isinstance(answer, dict)
        and {"ok", "status", "error", "hint"} <= set(answer)
        and answer["ok"] is False
        and answer["status"] == status
        and bool(answer["error"])
        and bool(answer["hint"])
    )


@pytest.mark.parametrize("path", sorted({filled(endpoint.path) for endpoint in ROUTES}))
def test_wrong_methods_are_refused_in_the_one_shape(client: TestClient, path: str) -> None:
    allowed = {method for endpoint in ROUTES if filled(endpoint.path) == path for method in endpoint.methods}
    for method in set(HTTP_METHODS) - allowed:
        answer = client.request(method, path)
        assert answer.status_code == 405 and is_error(answer.json(), 405)
        assert set(answer.headers["allow"].split(", ")) >= allowed


@pytest.mark.parametrize("endpoint", [found for found in ROUTES if any(p.required for p in found.parameters)])
def test_missing_things_are_refused_in_the_one_shape(client: TestClient, endpoint: Endpoint, token: str) -> None:
    headers = {"authorization": f"Bearer {token}"} if endpoint.token else {}
    answer = client.request(endpoint.methods[0], filled(endpoint.path), headers=headers)
    assert answer.status_code in (400, 404, 409)
    assert is_error(answer.json(), answer.status_code)


def test_unknown_addresses_are_refused_as_json_and_as_a_page(client: TestClient) -> None:
    assert is_error(client.get("/nowhere").json(), 404)
    page = client.get("/nowhere", headers={"accept": "text/html"})
    assert page.status_code == 404 and "<h1>" in page.text


def test_a_defect_shows_nothing_of_itself(
    warehouse_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(_ask: object) -> None:
        raise RuntimeError("secret insides")

    import quadloom.web.app as app

    changed = tuple(
        Endpoint(path=found.path, handler=broken, summary="") if found.path == "/about" else found  # type: ignore[arg-type]
        for found in table.ROUTES
    )
    monkeypatch.setattr(app, "ROUTES", changed)
    with TestClient(create_app(SiteState(warehouse_path, Settings())), base_url="http://localhost") as client:
        answer = client.get("/about")
    assert is_error(answer.json(), 500) and "secret" not in answer.text
    capsys.readouterr()


def test_an_empty_directory_is_not_ready(tmp_path: Path) -> None:
    site = SiteState(tmp_path, Settings(web=WebSettings(rate=0)))
    with TestClient(create_app(site), base_url="http://localhost") as client:
        for path in ("/", "/health/ready", "/search.json", "/sparql?query=ASK{}"):
            answer = client.get(path)
            assert is_error(answer.json(), 503), path
            assert "retry-after" in answer.headers
        assert client.get("/health/live").status_code == 200


def test_every_error_of_ours_has_a_status() -> None:
    assert status_of(QuerySyntaxError("x")) == 400
    assert status_of(QuadloomError("x")) == 500


def test_openapi_describes_every_route(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    for endpoint in ROUTES:
        operations = described["paths"][endpoint.path.replace(":path}", "}")]
        for method in set(endpoint.methods) - {"QUERY"}:
            operation = operations[method.lower()]
            assert operation["summary"]
            assert {found["name"] for found in operation["parameters"]} == {p.name for p in endpoint.parameters}
        in_path = set(re.findall(r"\{(\w+)", endpoint.path))
        assert in_path == {p.name for p in endpoint.parameters if p.place == "path"}
        if endpoint.twin:
            assert endpoint.twin_path in described["paths"]


def test_openapi_and_the_application_know_the_same_addresses(client: TestClient) -> None:
    described = {
        (path, method.upper())
        for path, operations in client.get("/openapi.json").json()["paths"].items()
        for method in operations
    }
    served = {
        (route.path.replace(":path}", "}"), method)
        for route in client.app.routes  # type: ignore[attr-defined]
        if route.path != "/mcp"  # describes itself
        for method in route.methods - {"OPTIONS", "HEAD", "QUERY"}
    }
    assert described == served
    names = [
        operation["operationId"]
        for operations in client.get("/openapi.json").json()["paths"].values()
        for operation in operations.values()
    ]
    assert len(names) == len(set(names))


def test_reference_page_names_every_route() -> None:
    page = (ROOT / "docs" / "reference" / "http.md").read_text(encoding="utf-8")
    for endpoint in ROUTES:
        assert f"`{endpoint.path.replace(':path}', '}')}`" in page, endpoint.path


_VALUES = st.one_of(
    st.text(max_size=40), st.sampled_from(["http://a.example/", "schema:Book", "-1", "1e9", "\x00", "ü"])
)


@settings(max_examples=examples(50, 500), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_input_meets_a_defect(client: TestClient, data: st.DataObject) -> None:
    """What schemathesis would do: any value for any described parameter; the answer is never a 500."""
    reading = [found for found in ROUTES if "GET" in found.methods and "text/event-stream" not in found.produces]
    endpoint = data.draw(st.sampled_from(reading))
    fields = {p.name: data.draw(_VALUES, label=p.name) for p in endpoint.parameters if p.place == "query"}
    for parameter in endpoint.parameters:
        if parameter.place == "query" and not parameter.required and data.draw(st.booleans()):
            fields.pop(parameter.name)
    if endpoint.path == "/inspect":
        fields.pop("url", None)
    accept = data.draw(st.sampled_from(["text/html", "application/json", "*/*", "text/turtle;q=0.5", "x", ";;q=,"]))
    answer = client.get(filled(endpoint.path), params=fields, headers={"accept": accept})
    assert answer.status_code != 500, (endpoint.path, fields, answer.text)
