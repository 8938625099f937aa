"""Threads of the owner: an error in one of them must end the crawl, not leave it waiting for ever, and an error of the
crawl must end every one of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable


def start(name: str, target: Callable[[], None], failed: Callable[[BaseException], None]) -> threading.Thread:
    """Run `target`; whatever it raises goes to `failed`."""

    def run() -> None:
        try:
            target()
        except BaseException as error:  # noqa: BLE001  handed over, and raised again in the owner's thread
            failed(error)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    return thread


def close_all(steps: Iterable[Callable[[], object]]) -> None:
    """Take every step in its order, whatever those before it raised; then raise the first error.

    Without it a full disk in the first step leaves the threads of the others writing to stores that are being closed.
    """
    first: Exception | None = None
    for step in steps:
        try:
            step()
        except Exception as error:  # noqa: BLE001  raised below
            first = first or error
    if first is not None:
        raise first
