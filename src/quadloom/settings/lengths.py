"""Lengths of time as people write them: `90d`, `12h`, `forever`."""

from __future__ import annotations

import math

from quadloom.errors import SettingsError

_CENTURY = 100 * 365.25 * 86400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def seconds(text: str) -> float:
    """Read `90d`, `1h`, `30m`, `45s` or plain seconds; `forever` is infinity. Raises ValueError for anything else."""
    text = text.strip().lower()
    if text == "forever":
        return math.inf
    length = float(text[:-1]) * _UNITS[text[-1]] if text and text[-1] in _UNITS else float(text)
    if not 0.0 <= length < math.inf:
        raise ValueError(f"not a length of time: {text!r}")
    return length


def length_of(name: str, text: str, least: float = 0.0) -> float:
    """The same for the setting `name`, at most a century so that it can be added to a date. Raises `SettingsError`."""
    try:
        return min(max(seconds(text), least), _CENTURY)
    except ValueError:
        raise SettingsError(
            f"{name} = {text!r} is not a length of time", hint="write `90d`, `12h`, `30m` or `forever`"
        ) from None
