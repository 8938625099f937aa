"""Results as tables of pandas, polars or Arrow, for notebooks and scripts.

A column gets the type that all of its values have: whole numbers, numbers, truth values, dates with time; anything else
is text. Unbound values are missing. The libraries are optional; the method that needs a missing one raises an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from quadloom.errors import UsageError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Cell = str | int | float | bool | datetime | None
_DECIMAL = re.compile(r"[+-]?(0|[1-9]\d*)?(\.\d+)?([eE][+-]?\d{1,3})?")
_EXACT_DIGITS = 15  # of a whole number as a float
_TRUTH = {"true": True, "false": False}


class FrameMethods:
    """`arrow()`, `pandas()` and `polars()` for a result that has `columns()`."""

    def columns(self) -> Mapping[str, Sequence[Cell]]:
        """Name → values, all of the same length."""
        raise NotImplementedError

    def arrow(self) -> pyarrow.Table:
        """The rows as an Arrow table. Raises `UsageError` without pyarrow."""
        found: pyarrow.Table = _library("pyarrow", "pip install 'quadloom[parquet]'").table(dict(self.columns()))
        return found

    def pandas(self) -> pandas.DataFrame:
        """The rows as a pandas table. Raises `UsageError` without pandas."""
        found: pandas.DataFrame = _library("pandas", "pip install pandas").DataFrame(dict(self.columns()))
        return found

    def polars(self) -> polars.DataFrame:
        """The rows as a polars table. Raises `UsageError` without polars."""
        found: polars.DataFrame = _library("polars", "pip install polars").DataFrame(dict(self.columns()))
        return found


def typed(texts: Sequence[str | None]) -> Sequence[Cell]:
    """The values as the narrowest type that fits all of them; empty text counts as missing unless a column is text."""
    given = [text for text in texts if text]
    if not given:
        return [text or None for text in texts]
    for convert in (_truth, _whole, _decimal, _moment):
        found = _converted(texts, convert)
        if found is not None:
            return found
    return list(texts)


def _converted(texts: Sequence[str | None], convert: Callable[[str], Cell]) -> list[Cell] | None:
    try:
        return [convert(text) if text else None for text in texts]
    except (ValueError, KeyError, OverflowError):
        return None


def _truth(text: str) -> bool:
    return _TRUTH[text]


def _whole(text: str) -> int:
    """A whole number that fits 64 bits. With leading zeros it is a name (a postal code), not an amount."""
    number = int(text)
    if str(number) != text or not -(1 << 63) <= number < 1 << 63:
        raise ValueError(text)
    return number


def _decimal(text: str) -> float:
    if not _DECIMAL.fullmatch(text) or (text.isdigit() and len(text) > _EXACT_DIGITS):
        raise ValueError(text)
    return float(text)


def _moment(text: str) -> datetime:
    """A date with or without a time, in UTC; without a zone it is taken as UTC, so that a column has one type."""
    if len(text) < len("2026-01-01") or text[4:5] != "-":
        raise ValueError(text)
    found = datetime.fromisoformat(text)
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


def require(package: str, hint: str) -> None:
    """Raise `UsageError` if an optional package is not installed."""
    if find_spec(package) is None:
        raise UsageError(f"the package {package} is not installed", hint=hint)


def _library(name: str, hint: str) -> Any:
    require(name, hint)
    return import_module(name)
