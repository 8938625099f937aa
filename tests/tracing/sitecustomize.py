"""Counts calls by module of quadloom, in every process that starts with this folder in PYTHONPATH and CALL_COUNTS set.

Functions inside of functions, comprehensions and lambdas count with the function around them.
"""

from __future__ import annotations

import atexit
import json
import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

_PACKAGE = "/quadloom/"
_WRITE_SECONDS = 0.1  # between two files: processes may be killed

_counts: Counter[str] = Counter()
_written = 0.0


def _count(frame: FrameType, event: str, _argument: object) -> None:
    if event != "call":
        return
    code = frame.f_code
    _, found, module = code.co_filename.rpartition(_PACKAGE)
    if found and not code.co_name.startswith("<") and "<locals>.<" not in code.co_qualname:
        _counts[f"{module}:{code.co_qualname}"] += 1
        if time.monotonic() - _written > _WRITE_SECONDS:
            _write()


def _write() -> None:
    global _written
    _written = time.monotonic()
    Path(os.environ["CALL_COUNTS"], f"{os.getpid()}.json").write_text(json.dumps(_counts), encoding="utf-8")


def _begin_again() -> None:
    _counts.clear()
    sys.setprofile(_count)


if "CALL_COUNTS" in os.environ:
    sys.setprofile(_count)
    threading.setprofile(_count)
    os.register_at_fork(after_in_child=_begin_again)
    atexit.register(_write)
