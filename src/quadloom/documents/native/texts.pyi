"""In C: `is_utf8_in_python` (`quadloom.documents.syntaxes.charset`), `tag_bounds_in_python`
(`quadloom.documents.syntaxes.guards`) and of a part of `splittable_in_python` (`quadloom.documents.words.scripts`)."""

from collections.abc import Callable

def is_utf8(body: bytes, /) -> bool:
    """Whether `body.decode("utf-8")` would succeed; nothing is decoded."""

def is_tame(
    source: bytes, rules: dict[bytes, int], depth: int, attributes: int, formatting: int, roots: int, /
) -> bool:
    """Whether no tag of an HTML source goes too far: `_Reader` of `quadloom.documents.syntaxes.html.tree` leaves it as
    it is. False also for what is too unusual to tell, such as 600 different names of elements."""

def tag_bounds(xml: bytes, /) -> tuple[int, int]:
    """How deep elements of XML without comments nest at most, and the most bytes between two `<`."""

def with_runs_rewritten(text: str, sparse: int, rewrite: Callable[[str], str], /) -> bytes | str | None:
    """The text with each run of characters outside ASCII as `rewrite` spells it, in UTF-8; `text` if nothing changes.
    Runs of Latin letters and punctuation stay as they are without being asked for. None if a rule looks beyond a run,
    or if more than one of `sparse` characters is of another script."""
