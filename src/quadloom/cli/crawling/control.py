"""`quadloom pause | resume | stop`: words to a running crawl."""

from __future__ import annotations

from quadloom.cli.session import session
from quadloom.crawl.control import ask
from quadloom.errors import UsageError


def pause() -> None:
    """Let a running crawl rest: what is under way is finished, nothing new is fetched."""
    _say("pause")


def resume() -> None:
    """Let a paused crawl go on."""
    _say("resume")


def stop() -> None:
    """End a running crawl: what is under way is finished and saved."""
    _say("stop")


def _say(verb: str) -> None:
    s = session()
    answer = ask(s.warehouse, verb)
    if answer is None:
        raise UsageError(
            f"no crawl is running on {s.warehouse}", hint="`quadloom crawl` starts one; -w names another warehouse"
        )
    if s.json:
        s.emit(answer)
    else:
        s.say(f"{answer}")
