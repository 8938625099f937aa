"""What changes a crawl: only with --crawl, only with a token, and always by asking the crawl's owner."""

from __future__ import annotations

import base64
from http import HTTPStatus
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quadloom.asking.sparql.prefixes import type_iris
from quadloom.crawl.control import Value
from quadloom.crawl.publication import LIST
from quadloom.errors import QuadloomError, StoreError
from quadloom.settings import seconds
from quadloom.web.server.errors import RequestRefused
from quadloom.web.server.rendering import json_response
from quadloom.web.server.requests import ViewResponse, WebRequest
from quadloom.web.server.security import SANDBOX
from quadloom.web.server.state import SiteState

COOKIE = "quadloom_token"
COMMANDS = ("pause", "resume", "stop", "seeds", "recrawl", "scope")
_MOST_URLS = 10_000


def authorise(request: Request, desk: SiteState) -> None:
    """Raises 403 on a read-only server, 401 without a good token. Browsers carry it in a SameSite=Strict cookie."""
    if not desk.may_control:
        raise RequestRefused(
            403, "this server only reads", hint="start it with `quadloom serve --crawl` to control a crawl"
        )
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
    if not given or not desk.tokens.accepts(given):
        raise RequestRefused(
            401,
            "a token is needed" if not given else "this token is not known",
            hint="send `Authorization: Bearer …`, or sign in at /sign-in; `quadloom serve` printed the token",
            headers={"WWW-Authenticate": 'Bearer realm="quadloom"'},
        )


def command(ask: WebRequest) -> Response:
    """POST /control/{verb}. A form on a page is answered with the page again, a program with JSON."""
    verb = ask.path("verb")
    if verb not in COMMANDS:
        raise RequestRefused(404, f"there is no command {verb[:30]}", hint=f"commands: {', '.join(COMMANDS)}")
    answer = _told(ask, *_request(ask, verb))
    ask.desk.feed.refresh()
    if ask.content_type == "application/x-www-form-urlencoded":
        return RedirectResponse("/monitor", HTTPStatus.SEE_OTHER)
    return json_response({"answer": answer})


def _request(ask: WebRequest, verb: str) -> tuple[str, dict[str, Value]]:
    """Our words as the owner knows them. A form gives lists as texts with spaces between."""
    is_form = ask.content_type == "application/x-www-form-urlencoded"
    given: dict[str, Value] = {name: [*text.split()] for name, text in ask.fields()} if is_form else {**ask.document()}
    if verb == "seeds":
        return "seeds", {"urls": _urls(given.get("urls"))}
    if verb == "recrawl":
        wish = {name: given[name] for name in ("urls", "site") if given.get(name)}
        if isinstance(older := given.get("older_than"), str):
            wish["read_before"] = ask.desk.clock() - _duration(older)
        return "refresh", wish
    if verb == "scope":
        rules = {name: given[name] for name in ("include", "exclude", "host") if given.get(name)}
        if not rules:
            raise RequestRefused(400, "there is no rule in the request", hint='such as {"exclude": ["*/private/*"]}')
        return "scope", {"rules": rules, "remove": given.get("remove") is True}
    return verb, {}


def _urls(found: Value, most: int = _MOST_URLS) -> Value:
    if not isinstance(found, list) or not found or not all(isinstance(url, str) for url in found):
        raise RequestRefused(400, "there are no URLs in the body", hint='send {"urls": ["https://example.org/new"]}')
    if len(found) > most:
        raise RequestRefused(413, f"more than {most} URLs at once", hint="send them in several requests")
    return found


def _duration(text: str) -> float:
    try:
        return seconds(text)
    except ValueError:
        raise RequestRefused(400, f"not a time: {text[:30]}", hint="such as 7d, 12h or 30m") from None


def publish(ask: WebRequest) -> Response:
    """A site's owner tells of new or changed pages, or of a changed sitemap. Answers what became of each, counted."""
    document = ask.document()
    given: dict[str, Value] = {"owner": True}
    if "sitemap" in document:
        if not isinstance(document["sitemap"], str) or not document["sitemap"]:
            raise RequestRefused(
                400, "sitemap is no address", hint='send {"sitemap": "https://example.org/sitemap.xml"}'
            )
        given["sitemap"] = document["sitemap"]
    if "urls" in document or "sitemap" not in document:
        given["urls"] = _urls(document.get("urls"), LIST)
    return json_response({"answer": _told(ask, "publish", given)})


def subscribe(ask: WebRequest) -> Response:
    """POST adds, DELETE with an id removes."""
    is_form = ask.content_type == "application/x-www-form-urlencoded"
    given: dict[str, Value] = {} if is_form else {**ask.document()}
    if is_form:
        given = {"name": ask.text("name"), "query": ask.text("query").strip()} | {
            name: [*ask.texts(name)] for name in ("urls", "sites")
        }
        given["types"] = [iri for name in ask.texts("types") for iri in type_iris(name)]
    if ask.request.method == "DELETE":
        return json_response({"answer": _told(ask, "unsubscribe", {"id": given.get("id", "")})})
    if not any(given.get(name) for name in ("urls", "sites", "types", "query")):
        raise RequestRefused(
            400, "there is no subscription in the request", hint='such as {"urls": ["https://example.org/"]}'
        )
    answer = _told(ask, "subscribe", {"id": uuid4().hex[:12], "created_at": ask.desk.clock(), **given})
    return RedirectResponse("/subscriptions", HTTPStatus.SEE_OTHER) if is_form else json_response({"answer": answer})


def websub(ask: WebRequest) -> Response:
    """A hub asks whether we meant it, or says that a topic has changed. Only what we subscribed to ourselves counts."""
    id = ask.path("id")
    if ask.request.method == "GET":
        query: dict[str, Value] = {**ask.request.query_params}
        challenge = _told(ask, "websub", {"id": id, "verifies": True, "query": query}, refused=404)
        return Response(str(challenge), media_type="text/plain", headers={"Content-Security-Policy": SANDBOX})
    signature = ask.request.headers.get("x-hub-signature", "")
    body = base64.b64encode(ask.body).decode()
    # 410 makes a hub forget us (section 7); a wrong signature is answered as a right one, so that nobody learns.
    said: dict[str, Value] = {"id": id, "verifies": False, "body": body, "signature": signature}
    _told(ask, "websub", said, refused=410)
    return Response(status_code=HTTPStatus.ACCEPTED)


def sign_in(ask: WebRequest) -> ViewResponse | Response:
    """The token goes into a cookie that scripts cannot read and other sites' pages cannot send."""
    if ask.request.method == "GET":
        return ViewResponse("sign_in.html", {"wrong": False})
    if ask.text("out"):
        response = RedirectResponse("/sign-in", HTTPStatus.SEE_OTHER)
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")
        return response
    token = ask.text("token").strip()
    if not ask.desk.may_control or not ask.desk.tokens.accepts(token):
        return ViewResponse("sign_in.html", {"wrong": True}, status=401, headers={"WWW-Authenticate": "Bearer"})
    response = RedirectResponse("/monitor", HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE, token, httponly=True, samesite="strict", secure=ask.request.url.scheme == "https", max_age=7 * 86400
    )
    return response


def _told(ask: WebRequest, verb: str, arguments: dict[str, Value], *, refused: int = 400) -> Value:
    """What the owner answers. Its refusals are about what was asked, hence the client's."""
    try:
        answer = ask.desk.tell(verb, **arguments)
    except StoreError:
        raise
    except QuadloomError as error:
        raise RequestRefused(refused, error.message, hint=error.hint) from error
    if answer is None:
        raise RequestRefused(409, "no crawl is running", hint="it has ended, or is just beginning: see /monitor")
    return answer
