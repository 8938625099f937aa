"""A second try for what a server undid: a restart, a deadlock, a session that it ended."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from quadloom.errors import StoreUnavailable

T = TypeVar("T")
_PAUSES = (0.1, 1.0, 5.0)  # seconds before each further try; waiting for a server that is away comes on top


def retry_when_unavailable(transaction: Callable[[], T]) -> T:
    """Nothing of a failed try was written, or writing it twice is harmless: that is for the caller to know."""
    for pause in _PAUSES:
        try:
            return transaction()
        except StoreUnavailable:
            time.sleep(pause)
    return transaction()
