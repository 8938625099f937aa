"""What changes a crawl: only with --crawl, only with a token, and always by asking the crawl's owner."""

from __future__ import annotations

from http import HTTPStatus

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quadloom.run.control import Value
from quadloom.web.asks import Ask, View
from quadloom.web.desk import Desk
from quadloom.web.refusals import Refused
from quadloom.web.rendering import json_response

COOKIE = "quadloom_token"
# Our word → the owner's, and which arguments it takes.
_VERBS = {
    "pause": ("pause", ()),
    "resume": ("resume", ()),
    "stop": ("stop", ()),
    "seeds": ("seeds", ("urls",)),
    "recrawl": ("refresh", ("urls", "site", "older_than")),
    "scope": ("scope", ("include", "exclude", "add", "remove")),
}
_MOST_URLS = 10_000


def authorise(request: Request, desk: Desk) -> None:
    """Raises 403 on a read-only server, 401 without a good token. Browsers carry it in a SameSite=Strict cookie."""
    if not desk.may_control:
        raise Refused(403, "this server only reads", hint="start it with `quadloom serve --crawl` to control a crawl")
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    given = token.strip() if scheme.lower() == "bearer" else request.cookies.get(COOKIE, "")
    if not given or not desk.tokens.accepts(given):
        raise Refused(
            401,
            "a token is needed" if not given else "this token is not known",
            hint="send `Authorization: Bearer …`, or sign in at /sign-in; `quadloom serve` printed the token",
            headers={"WWW-Authenticate": 'Bearer realm="quadloom"'},
        )


def command(ask: Ask) -> Response:
    """POST /control/{verb}. A form on a page is answered with the page again, a program with JSON."""
    verb = ask.path("verb")
    if verb not in _VERBS:
        raise Refused(404, f"there is no command {verb[:30]}", hint=f"commands: {', '.join(_VERBS)}")
    word, names = _VERBS[verb]
    document = ask.document() if ask.content_type == "application/json" else {}
    arguments: dict[str, Value] = {name: document[name] for name in names if name in document}
    if not document:
        arguments = {name: [*ask.text(name).split()] for name in names if ask.text(name)}
    answer = _told(ask, word, arguments)
    if ask.content_type == "application/x-www-form-urlencoded":
        return RedirectResponse("/monitor", HTTPStatus.SEE_OTHER)
    return json_response({"answer": answer})


def publish(ask: Ask) -> Response:
    """A site's owner tells of new or changed pages."""
    urls = ask.document().get("urls")
    if not isinstance(urls, list) or not urls or not all(isinstance(url, str) for url in urls):
        raise Refused(400, "there are no URLs in the body", hint='send {"urls": ["https://example.org/new"]}')
    if len(urls) > _MOST_URLS:
        raise Refused(413, f"more than {_MOST_URLS} URLs at once", hint="send them in several requests")
    return json_response({"answer": _told(ask, "seeds", {"urls": urls})})


def subscribe(ask: Ask) -> Response:
    verb = "unsubscribe" if ask.request.method == "DELETE" else "subscribe"
    document: dict[str, Value] = {**ask.document()}
    if not document:
        raise Refused(400, "there is no subscription in the body", hint='such as {"url": "https://example.org/"}')
    return json_response({"answer": _told(ask, verb, document)})


def sign_in(ask: Ask) -> View | Response:
    """The token goes into a cookie that scripts cannot read and other sites' pages cannot send."""
    if ask.request.method == "GET":
        return View("sign_in.html", {"wrong": False})
    token = ask.text("token").strip()
    if not ask.desk.may_control or not ask.desk.tokens.accepts(token):
        return View("sign_in.html", {"wrong": True}, status=401, headers={"WWW-Authenticate": "Bearer"})
    response = RedirectResponse("/monitor", HTTPStatus.SEE_OTHER)
    response.set_cookie(
        COOKIE, token, httponly=True, samesite="strict", secure=ask.request.url.scheme == "https", max_age=7 * 86400
    )
    return response


def _told(ask: Ask, verb: str, arguments: dict[str, Value]) -> Value:
    answer = ask.desk.tell(verb, **arguments)
    if answer is None:
        raise Refused(409, "no crawl is running", hint="it has ended, or is just beginning: see /monitor")
    return answer
