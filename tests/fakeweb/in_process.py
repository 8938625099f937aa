"""The fake web as the function behind an `InProcessTransport`."""

from __future__ import annotations

from collections import Counter

from quadloom.fetching.in_process import Responder, respond
from quadloom.fetching.transport import FetchRequest
from quadloom.model.page import Page
from quadloom_lab.fakeweb import FakeRequest, FakeWeb


def respond_from(web: FakeWeb) -> Responder:
    """Answers as the server of `web` would, `delay` included, which costs no time here."""
    attempts: Counter[str] = Counter()

    def answer(request: FetchRequest) -> Page:
        host, slash, rest = request.href.partition("://")[2].partition("/")
        response = web.answer(FakeRequest(host, slash + rest, request.accept, attempt=attempts[request.href]))
        if not response.cacheable:
            attempts[request.href] += 1
        headers = tuple((name.lower(), value) for name, value in response.headers)
        return respond(request, response.body, status=response.status, headers=headers, seconds=response.delay)

    return answer
