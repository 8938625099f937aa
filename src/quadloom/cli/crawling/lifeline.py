"""A process that must not outlive the one that started it, however that one ended.

The starter keeps the other end of this process's standard input open. Whatever ends the starter, SIGKILL included,
closes it, and reading here comes to an end. This needs no system call of one system, and leaves time to finish what is
under way.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

_PIECE = 4096


def when_input_ends(then: Callable[[], None]) -> None:
    """Call `then` once, from another thread, when nobody can write to our standard input any more."""

    def wait() -> None:
        while sys.stdin.buffer.read(_PIECE):
            pass  # what is said on this line is of no interest, only that somebody holds it
        then()

    threading.Thread(target=wait, name="lifeline", daemon=True).start()
