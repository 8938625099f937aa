"""The route table as OpenAPI 3.1."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from quadloom import __version__
from quadloom.web.server.requests import Json

if TYPE_CHECKING:
    from quadloom.web.routes import Endpoint, Parameter

_WORD = re.compile(r"\w+")
_ERROR: Json = {
    "type": "object",
    "required": ["ok", "status", "error", "hint"],
    "properties": {
        "ok": {"const": False},
        "status": {"type": "integer"},
        "error": {"type": "string"},
        "hint": {"type": "string"},
        "line": {"type": "integer"},
        "column": {"type": "integer"},
    },
}


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Json]:
    paths: dict[str, dict[str, Json]] = {}
    for endpoint in endpoints:
        twin = {endpoint.twin_path: ("application/json",)} if endpoint.twin else {}
        for path, produces in ({endpoint.path: endpoint.produces} | twin).items():
            for method in endpoint.methods:
                if method != "QUERY":  # OpenAPI 3.1 does not know this method
                    paths.setdefault(_plain(path), {})[method.lower()] = _operation(endpoint, method, path, produces)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quadloom", "version": __version__, "summary": "A warehouse of the web's data"},
        "paths": {path: dict(operations) for path, operations in paths.items()},
        "components": {
            "schemas": {"Refusal": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(endpoint: Endpoint, method: str, path: str, produces: tuple[str, ...]) -> dict[str, Json]:
    errors: dict[str, Json] = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    if "text/html" in produces:
        errors["text/html"] = {}  # for clients that prefer pages
    operation: dict[str, Json] = {
        "operationId": "-".join((method.lower(), *_WORD.findall(path))),
        "summary": endpoint.summary,
        "parameters": [_parameter(parameter) for parameter in endpoint.parameters],
        "responses": {
            "200": {"description": "the response", "content": {media: {} for media in produces}},
            "default": {"description": "an error", "content": errors},
        },
    }
    if endpoint.consumes and method in ("POST", "DELETE"):
        operation["requestBody"] = {"content": {media: {} for media in endpoint.consumes}}
    if endpoint.token:
        operation["security"] = [{"token": []}]
    return operation


def _parameter(parameter: Parameter) -> dict[str, Json]:
    schema: dict[str, Json] = {"type": parameter.kind}
    if parameter.choices:
        schema["enum"] = [*parameter.choices]
    if parameter.required:
        schema["minLength"] = 1
    if parameter.many:
        schema = {"type": "array", "items": schema}
    described: dict[str, Json] = {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "required": parameter.required,
        "schema": schema,
    }
    if parameter.example and not parameter.many:
        described["example"] = int(parameter.example) if parameter.kind == "integer" else parameter.example
    return described


def _plain(path: str) -> str:
    return path.replace(":path}", "}")
