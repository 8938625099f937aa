"""Tries something again that failed because a server was away."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from quadloom.errors import StoreUnavailable

T = TypeVar("T")
_PAUSES = (0.1, 1.0, 2.0, 5.0, 5.0)  # seconds before each retry; waiting for a server that cannot be reached is extra


def retry_when_unavailable(transaction: Callable[[], T]) -> T:
    """Run `transaction`, and up to five times again after `StoreUnavailable`. It must be safe to repeat: either a
    failed run wrote nothing, or writing it twice is harmless."""
    for pause in _PAUSES:
        try:
            return transaction()
        except StoreUnavailable:
            time.sleep(pause)
    return transaction()
