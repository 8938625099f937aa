"""Numbers, sizes and times as the terminal shows them."""

from __future__ import annotations

from datetime import UTC, datetime


def counted(count: int, noun: str, ending: str = "s") -> str:
    """`1 page`, `2,000 pages`."""
    return f"{count:,} {noun}{'' if count == 1 else ending}"


def size(count: int) -> str:
    """`312 B`, `14 KiB`, `1.5 MiB`."""
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20)):
        if count >= bytes_:
            return f"{count / bytes_:.1f} {unit}"
    return f"{count / 1024:.0f} KiB" if count >= 1024 else f"{count} B"


def minute(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def length(seconds: float) -> str:
    """`7 d`, `12 h` or `45 s`."""
    for unit, size in (("d", 86400), ("h", 3600)):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def cut(text: str, columns: int) -> str:
    return text if len(text) <= columns else text[: columns - 1] + "…"
