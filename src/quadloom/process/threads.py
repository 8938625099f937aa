"""Threads of the owner: an error in one of them must end the crawl, not leave it waiting for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable


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
