"""JSON that a site or a search engine sends."""

from __future__ import annotations

import msgspec


def decoded(body: bytes | str) -> object:
    """The value, or None if it is no JSON: wrong syntax, bytes that are not UTF-8, or nested too deep. Never raises: an
    answer of a foreign server must not end the run that asked for it."""
    try:
        value: object = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value
