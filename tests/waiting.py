"""Wait until something has happened. The limit is far beyond what a busy machine needs: only a defect reaches it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

_PAUSE = 0.01


def wait_until(
    reached: Callable[[], object],
    what: str | Callable[[], str] = "nothing happened",
    *,
    seconds: float = 60.0,
    alive: subprocess.Popen[bytes] | subprocess.Popen[str] | None = None,
    ignoring: AbstractContextManager[object] | None = None,
) -> None:
    """Return when `reached` is true. Fails with `what` after `seconds` or when the process `alive` has ended.
    Exceptions that `ignoring` suppresses count as not reached."""
    deadline = time.monotonic() + seconds
    while True:
        with ignoring or nullcontext():
            if reached():
                return
        ended = alive is not None and alive.poll() is not None
        assert not ended and time.monotonic() < deadline, what if isinstance(what, str) else what()
        time.sleep(_PAUSE)
