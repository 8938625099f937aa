"""Requests to a running crawl: what comes back if it cannot answer them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quadloom.crawl.control import ControlRequest, ControlServer, Value, ask
from quadloom.errors import QuadloomError, UsageError


def served(folder: Path, handle: Callable[[ControlRequest], Value], verb: str = "status") -> Value | None:
    server = ControlServer(folder, handle)
    try:
        return ask(folder, verb, number=1)
    finally:
        server.close()


def refuse(_request: ControlRequest) -> Value:
    raise UsageError("not this", hint="but that")


def be_slow(_request: ControlRequest) -> Value:
    raise TimeoutError  # as `Crawl.call` does when its thread has no time for it


def test_an_answer_comes_back(tmp_path: Path) -> None:
    assert served(tmp_path, lambda request: {"verb": request.verb, **request.arguments}) == {  # type: ignore[dict-item]
        "verb": "status",
        "number": 1,
    }
    assert ask(tmp_path, "status") is None, "nobody is there any more"


def test_a_refusal_comes_back_with_its_hint(tmp_path: Path) -> None:
    with pytest.raises(QuadloomError, match="not this") as refused:
        served(tmp_path, refuse)
    assert refused.value.hint == "but that"


def test_a_busy_crawl_is_not_reported_as_ended(tmp_path: Path) -> None:
    with pytest.raises(QuadloomError, match="did not answer within a minute") as busy:
        served(tmp_path, be_slow)
    assert "try again" in busy.value.hint
