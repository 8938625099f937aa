"""Plain text: nothing to state, but words to search in."""

from __future__ import annotations

from quadloom.syntaxes.html_text import fold
from quadloom.syntaxes.registry import Context


def read(context: Context) -> None:
    """Keep the text, folded, up to the limit."""
    limit = context.settings.limits.text_chars
    context.facts.text = fold(context.text[: 2 * limit])[:limit]
