"""A request as handlers see it, and what they answer.

A handler is a plain function `WebRequest → ViewResponse | Response`. A `ViewResponse` is data with a template: it is
rendered as a page or, at the address ending in `.json`, as JSON, so the two can never differ in their facts.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import parse_qsl, urlencode

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from quadloom.warehouse import Warehouse
from quadloom.web.server.errors import HttpError
from quadloom.web.server.negotiation import choose
from quadloom.web.server.state import SiteState

Json = str | int | float | bool | None | list["Json"] | dict[str, "Json"]

_MAX_DIGITS = 20  # of a number; int() of a long text takes quadratic time


class ViewResponse(msgspec.Struct, frozen=True):
    """`data` is what the JSON twin shows; `extra` is needed by the page only (state of forms, texts for people)."""

    template: str
    data: msgspec.Struct | dict[str, object]
    extra: dict[str, object] = {}
    status: int = 200
    headers: dict[str, str] = {}


class WebRequest:
    """One request: its parameters with limits, its body, which was already read, and a current view of the warehouse.

    `http` is Starlette's request, for headers, cookies and the client's address.
    """

    def __init__(self, http: Request, site: SiteState, body: bytes, warehouse: Warehouse | None = None) -> None:
        self.http = http
        self.site = site
        self.body = body
        self._warehouse = warehouse
        self._fields: list[tuple[str, str]] | None = None

    @property
    def warehouse(self) -> Warehouse:
        assert self._warehouse is not None, "the route table says which handlers read the warehouse"
        return self._warehouse

    @property
    def accept(self) -> str:
        return ", ".join(self.http.headers.getlist("accept"))

    @property
    def wants_json(self) -> bool:
        """The JSON twin was requested: by its address, or by a client that does not want pages."""
        if self.http.url.path.endswith(".json"):
            return True
        return bool(self.accept) and choose(self.accept, ("text/html", "application/json")) == "application/json"

    @property
    def content_type(self) -> str:
        return self.http.headers.get("content-type", "").partition(";")[0].strip().lower()

    @property
    def client(self) -> str:
        """The client's address; empty if the server does not know it."""
        return self.http.client.host if self.http.client else ""

    def path(self, name: str) -> str:
        """A part of the address, such as `name` of `/site/{name}`."""
        return str(self.http.path_params[name])

    def text(self, name: str, default: str = "") -> str:
        """The first value of a parameter, from the query string or a form."""
        return next((value for key, value in self.fields() if key == name), default)

    def texts(self, name: str) -> list[str]:
        return [value for key, value in self.fields() if key == name and value]

    def all(self, name: str) -> list[str]:
        """All values of a parameter, also empty ones, so that several lists keep their places."""
        return [value for key, value in self.fields() if key == name]

    def number(self, name: str, default: int, *, low: int, high: int) -> int:
        text = self.text(name, str(default))
        try:
            if len(text) > _MAX_DIGITS:
                raise ValueError
            return min(max(int(text), low), high)
        except ValueError:
            raise HttpError(
                400, f"{name} must be a number", hint=f"use a number between {low} and {high}, such as {default}"
            ) from None

    def required(self, name: str, example: str) -> str:
        value = self.text(name).strip()
        if not value:
            raise HttpError(400, f"the parameter {name} is missing", hint=f"example: ?{urlencode({name: example})}")
        return value

    def fields(self) -> list[tuple[str, str]]:
        if self._fields is None:
            fields = list(self.http.query_params.multi_items())
            if self.content_type == "application/x-www-form-urlencoded":
                fields += _form(self.body)
            self._fields = fields
        return self._fields

    def document(self) -> dict[str, Json]:
        """A JSON object in the body."""
        try:
            found = msgspec.json.decode(self.body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise HttpError(400, f"the body is not JSON: {error}", hint="send one JSON object") from None
        except RecursionError:
            raise HttpError(400, "the body is nested too deep", hint="send one flat JSON object") from None
        if not isinstance(found, dict):
            raise HttpError(400, "the body is not a JSON object", hint='example: {"urls": ["https://example.org/"]}')
        return found

    def link(self, **changes: str | int | None) -> str:
        """This address with some parameters changed; None removes one."""
        unchanged = [(key, value) for key, value in self.http.query_params.multi_items() if key not in changes]
        changed = [(key, str(value)) for key, value in changes.items() if value is not None]
        path = self.http.url.path.removesuffix(".json")
        return f"{path}?{urlencode(unchanged + changed)}" if unchanged or changed else path


Handler = Callable[[WebRequest], ViewResponse | Response]


def _form(body: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise HttpError(400, "the form cannot be decoded", hint="send it urlencoded in UTF-8") from None
