"""A request as handlers see it, and what they answer.

A handler is a plain function `WebRequest → ViewResponse | Response`. A `ViewResponse` is data with a template:
the gate renders it as a page or, at the address ending in `.json`, as JSON, so the two can never differ in what they
know.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from quadloom.warehouse import Warehouse
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.negotiation import choose
from quadloom.web.server.state import SiteState

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]


_DIGITS = 20  # of a number; int() of a long text takes quadratic time


class ViewResponse(msgspec.Struct, frozen=True):
    """`data` is what the twin shows; `extra` only the page needs (forms' state, texts for people)."""

    template: str
    data: msgspec.Struct | dict[str, object]
    extra: dict[str, object] = {}
    status: int = 200
    headers: dict[str, str] = {}


class WebRequest:
    """One request: parameters with limits, the body already read, and the warehouse as it is now."""

    def __init__(self, request: Request, desk: SiteState, body: bytes, warehouse: Warehouse | None = None) -> None:
        self.request = request
        self.desk = desk
        self.body = body
        self._warehouse = warehouse
        self._fields: list[tuple[str, str]] | None = None

    @property
    def warehouse(self) -> Warehouse:
        assert self._warehouse is not None, "the route table says which handlers read the warehouse"
        return self._warehouse

    @property
    def accept(self) -> str:
        return ", ".join(self.request.headers.getlist("accept"))

    @property
    def wants_json(self) -> bool:
        """The twin was asked for: by its address, or by a client that does not want pages."""
        if self.request.url.path.endswith(".json"):
            return True
        return bool(self.accept) and choose(self.accept, ("text/html", "application/json")) == "application/json"

    @property
    def content_type(self) -> str:
        return self.request.headers.get("content-type", "").partition(";")[0].strip().lower()

    def path(self, name: str) -> str:
        return str(self.request.path_params[name])

    def text(self, name: str, default: str = "") -> str:
        """The first value of a parameter, from the query string or a form."""
        return next((value for key, value in self.fields() if key == name), default)

    def texts(self, name: str) -> list[str]:
        return [value for key, value in self.fields() if key == name and value]

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        text = self.text(name, str(default))
        try:
            if len(text) > _DIGITS:
                raise ValueError
            return min(max(int(text), low), high)
        except ValueError:
            raise RequestRefused(
                400, f"{name} must be a number", hint=f"between {low} and {high}, such as {default}"
            ) from None

    def required(self, name: str, example: str) -> str:
        value = self.text(name).strip()
        if not value:
            raise RequestRefused(400, f"the parameter {name} is missing", hint=f"such as ?{urlencode({name: example})}")
        return value

    def fields(self) -> list[tuple[str, str]]:
        if self._fields is None:
            fields = list(self.request.query_params.multi_items())
            if self.content_type == "application/x-www-form-urlencoded":
                fields += _form(self.body)
            self._fields = fields
        return self._fields

    def document(self) -> dict[str, Json]:
        """A JSON object in the body."""
        try:
            found = msgspec.json.decode(self.body or b"{}")
        except msgspec.DecodeError as error:
            raise RequestRefused(400, f"the body is not JSON: {error}", hint="send one JSON object") from None
        if not isinstance(found, dict):
            raise RequestRefused(
                400, "the body is not a JSON object", hint='such as {"urls": ["https://example.org/"]}'
            )
        return found

    def link(self, **changes: str | int | None) -> str:
        """This address with some parameters changed; None takes one away. `next` always starts over."""
        kept = [(key, value) for key, value in self.request.query_params.multi_items() if key not in changes]
        fresh = [(key, str(value)) for key, value in changes.items() if value is not None]
        path = self.request.url.path.removesuffix(".json")
        return f"{path}?{urlencode(kept + fresh)}" if kept or fresh else path


Handler = Callable[[WebRequest], ViewResponse | Response]


def _form(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise RequestRefused(400, "the form does not decode", hint="send it urlencoded in UTF-8") from None
