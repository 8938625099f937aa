"""The native twins of `quadloom.syntaxes.charset.is_utf8` and of a part of `quadloom.analysis.scripts.splittable`."""

from collections.abc import Callable

def is_utf8(body: bytes, /) -> bool:
    """Whether `body.decode("utf-8")` would succeed; nothing is decoded."""

def with_runs_rewritten(text: str, sparse: int, rewrite: Callable[[str], str], /) -> str | None:
    """The text with each run of characters outside ASCII as `rewrite` spells it; the same object if nothing changes.
    Runs of Latin letters and punctuation stay as they are without being asked for. None if a rule looks beyond a run,
    or if more than one of `sparse` characters is of another script."""
