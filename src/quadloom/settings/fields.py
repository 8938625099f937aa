"""What fields of settings are made of: their description, their unit and their bounds.

A value outside of its bounds is refused when it is loaded, with its place, and not in the middle of a crawl.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

Seconds = float
Bytes = int
Length = Annotated[str, Meta(pattern=r"^\s*(forever|\d+(\.\d+)?[smhdw]?)\s*$")]
"""A length of time, read by `quadloom.settings.lengths`."""

FROM_0, FROM_1, ABOVE_0 = Meta(ge=0), Meta(ge=1), Meta(gt=0)
MOST_WEIGHT = 1e6  # beyond every machine, and within the integers of the stores
WEIGHT = Meta(gt=0, le=MOST_WEIGHT)
SHARE, PORT = Meta(ge=0, le=1), Meta(ge=0, le=65535)


def doc(text: str) -> Meta:
    """What a field means. The reference page is made of these."""
    return Meta(description=text)
