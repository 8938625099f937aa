"""Changes of a crawl: only with --crawl, only with a token, and always as a command to the process that crawls."""

from __future__ import annotations

import base64
from http import HTTPStatus
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quadloom.asking.sparql.prefixes import type_iris
from quadloom.crawling.run.control import Value
from quadloom.crawling.run.publication import MAX_URLS
from quadloom.crawling.subscriptions.websub import read_topic, signed
from quadloom.errors import QuadloomError, StoreError
from quadloom.settings import seconds
from quadloom.web.server.errors import HttpError
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.security import SANDBOX
from quadloom.web.server.state import SiteState

COOKIE = "quadloom_token"
COMMANDS = ("pause", "resume", "stop", "seeds", "recrawl", "scope", "freshness")
_FRESHNESS = ("bandwidth", "suspect_share", "discovery_share", "policy", "alpha", "chi", "guided_share")
_MAX_URLS = 10_000


def authorise(request: Request, site: SiteState) -> None:
    """Raises 403 on a read-only server, 401 without a valid token. Browsers send it in a SameSite=Strict cookie."""
    if not site.may_control:
        raise HttpError(
            403, "this server is read-only", hint="start it with `quadloom serve --control` to control a crawl"
        )
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
    if not given or not site.tokens.accepts(given):
        raise HttpError(
            401,
            "a token is required" if not given else "this token is not valid",
            hint="send `Authorization: Bearer …`, or sign in at /sign-in; `quadloom serve` printed the token",
            headers={"WWW-Authenticate": 'Bearer realm="quadloom"'},
        )


def command(request: WebRequest) -> Response:
    """POST /control/{verb}. A form is answered with a redirect to the monitor, a program with JSON."""
    verb = request.path("verb")
    if verb not in COMMANDS:
        raise HttpError(404, f"there is no command {verb[:30]}", hint=f"commands: {', '.join(COMMANDS)}")
    answer = send_command(request, *_crawl_command(request, verb))
    request.site.crawl.refresh()
    if request.content_type == "application/x-www-form-urlencoded":
        return RedirectResponse("/monitor", HTTPStatus.SEE_OTHER)
    return json_response({"answer": answer})


def _crawl_command(request: WebRequest, verb: str) -> tuple[str, dict[str, Value]]:
    """The verb and arguments that the crawl understands. A form sends a list as one text with spaces."""
    is_form = request.content_type == "application/x-www-form-urlencoded"
    given: dict[str, Value] = (
        {name: [*text.split()] for name, text in request.fields()} if is_form else {**request.document()}
    )
    if verb == "seeds":
        return "seeds", {"urls": _urls(given.get("urls"))}
    if verb == "recrawl":
        selection = {name: given[name] for name in ("urls", "site") if given.get(name)}
        if isinstance(older := given.get("older_than"), str):
            selection["read_before"] = request.site.clock() - _duration(older)
        return "refresh", selection
    if verb == "scope":
        rules = {name: given[name] for name in ("include", "exclude", "host") if given.get(name)}
        if not rules:
            raise HttpError(400, "there is no rule in the request", hint='example: {"exclude": ["*/private/*"]}')
        return "scope", {"rules": rules, "remove": given.get("remove") is True}
    if verb == "freshness":
        return "freshness", _freshness(given)
    return verb, {}


def _freshness(given: dict[str, Value]) -> dict[str, Value]:
    """Shares, χ and policy; without any, the answer has the values in effect. A form sends numbers as text."""
    unknown = [name for name in given if name not in _FRESHNESS]
    if unknown:
        raise HttpError(400, f"there is no {unknown[0][:30]} to change", hint=f"names: {', '.join(_FRESHNESS)}")
    values = {name: value[0] if isinstance(value, list) and value else value for name, value in given.items()}
    try:
        return {
            name: float(value) if isinstance(value, str) and name != "policy" else value
            for name, value in values.items()
            if value != []
        }
    except ValueError as error:
        raise HttpError(400, f"not a number: {error}", hint='example: {"suspect_share": 0.3, "chi": 2}') from None


def _urls(given: Value, most: int = _MAX_URLS) -> Value:
    if not isinstance(given, list) or not given or not all(isinstance(url, str) for url in given):
        raise HttpError(400, "there are no URLs in the body", hint='send {"urls": ["https://example.org/new"]}')
    if len(given) > most:
        raise HttpError(413, f"more than {most} URLs at once", hint="send them in several requests")
    return given


def _duration(text: str) -> float:
    try:
        return seconds(text)
    except ValueError:
        raise HttpError(400, f"not a duration: {text[:30]}", hint="write it like 7d, 12h or 30m") from None


def publish(request: WebRequest) -> Response:
    """A site's owner announces new or changed pages, or a changed sitemap. Answers counts by result."""
    document = request.document()
    given: dict[str, Value] = {"owner": True}
    if "sitemap" in document:
        if not isinstance(document["sitemap"], str) or not document["sitemap"]:
            raise HttpError(
                400, "sitemap is not an address", hint='send {"sitemap": "https://example.org/sitemap.xml"}'
            )
        given["sitemap"] = document["sitemap"]
    if isinstance(document.get("changefreq"), str):
        given["changefreq"] = document["changefreq"]
    if "urls" in document or "sitemap" not in document:
        given["urls"] = _urls(document.get("urls"), MAX_URLS)
    return json_response({"answer": send_command(request, "publish", given)})


def subscribe(request: WebRequest) -> Response:
    """POST adds a subscription, DELETE with an id removes one."""
    is_form = request.content_type == "application/x-www-form-urlencoded"
    given: dict[str, Value] = {} if is_form else {**request.document()}
    if is_form:
        given = {"name": request.text("name"), "query": request.text("query").strip()} | {
            name: [*request.texts(name)] for name in ("urls", "sites")
        }
        given["types"] = [iri for name in request.texts("types") for iri in type_iris(name)]
    if request.http.method == "DELETE":
        return json_response({"answer": send_command(request, "unsubscribe", {"id": given.get("id", "")})})
    if not any(given.get(name) for name in ("urls", "sites", "types", "query")):
        raise HttpError(
            400, "there is no subscription in the request", hint='example: {"urls": ["https://example.org/"]}'
        )
    answer = send_command(request, "subscribe", {"id": uuid4().hex[:12], "created_at": request.site.clock(), **given})
    return RedirectResponse("/subscriptions", HTTPStatus.SEE_OTHER) if is_form else json_response({"answer": answer})


def websub(request: WebRequest) -> Response:
    """A hub verifies a subscription or delivers a change of its topic. Only subscriptions that the crawl made count.

    There is no token here, so the process that crawls hears of nothing but requests of those hubs: a body has up to
    4 MiB, and to read it takes that process 20 ms.
    """
    id, verifies = request.path("id"), request.http.method == "GET"
    topic = request.site.reader.ask(lambda warehouse: read_topic(warehouse.stores.catalog, id))
    if topic is None:
        # 410 ends the subscription at the hub (WebSub, section 7).
        raise HttpError(404 if verifies else 410, "there is no subscription at this callback")
    if verifies:
        query: dict[str, Value] = {**request.http.query_params}
        challenge = send_command(request, "websub", {"id": id, "verifies": True, "query": query}, refused=404)
        return Response(str(challenge), media_type="text/plain", headers={"Content-Security-Policy": SANDBOX})
    signature = request.http.headers.get("x-hub-signature", "")
    # A wrong signature gets the same answer as a right one, so that an attacker learns nothing.
    if signed(request.body, signature, topic.secret):
        body = base64.b64encode(request.body).decode()
        delivery: dict[str, Value] = {"id": id, "verifies": False, "body": body, "signature": signature}
        send_command(request, "websub", delivery, refused=410)
    return Response(status_code=HTTPStatus.ACCEPTED)


def sign_in(request: WebRequest) -> ViewResponse | Response:
    """The token is stored in a cookie that scripts cannot read and other sites' pages cannot send."""
    if request.http.method == "GET":
        return ViewResponse("sign_in.html", {"wrong": False})
    if request.text("out"):
        response = RedirectResponse("/sign-in", HTTPStatus.SEE_OTHER)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response
    token = request.text("token").strip()
    if not request.site.may_control or not request.site.tokens.accepts(token):
        return ViewResponse("sign_in.html", {"wrong": True}, status=401, headers={"WWW-Authenticate": "Bearer"})
    response = RedirectResponse("/monitor", HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE, token, httponly=True, samesite="strict", secure=request.http.url.scheme == "https", max_age=7 * 86400
    )
    return response


def send_command(request: WebRequest, verb: str, arguments: dict[str, Value], *, refused: int = 400) -> Value:
    """The crawl's answer to a command. What it refuses is the client's error, with status `refused`."""
    try:
        answer = request.site.send(verb, **arguments)
    except StoreError:
        raise
    except QuadloomError as error:
        raise HttpError(refused, error.message, hint=error.hint) from error
    if answer is None:
        raise HttpError(409, "no crawl is running", hint="it has ended or is just starting; /monitor shows its state")
    return answer
