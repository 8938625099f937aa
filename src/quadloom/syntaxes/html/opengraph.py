"""Open Graph: `<meta property="og:title" content="…">` as statements about the page.

The terms are those an RDFa 1.1 processor derives from the same markup (`og:` is in its initial context), with the same
literals, so the two readings fall together instead of doubling. Here the sloppy forms count too: `name` instead of
`property`, and the object types (`article:`, `book:`, …) whose prefixes pages use without declaring them.
"""

from __future__ import annotations

import re

from quadloom.syntaxes.registry import Context
from quadloom.syntaxes.terms import iri, literal

OG = "http://ogp.me/ns#"

_NAMESPACES = {
    "og": OG,
    "article": "http://ogp.me/ns/article#",
    "book": "http://ogp.me/ns/book#",
    "profile": "http://ogp.me/ns/profile#",
    "video": "http://ogp.me/ns/video#",
    "music": "http://ogp.me/ns/music#",
    "product": "http://ogp.me/ns/product#",
    "fb": "http://ogp.me/ns/fb#",
}
_NAME = re.compile(r"[a-z][a-z0-9_:-]*\Z")


def read(context: Context) -> None:
    """State every Open Graph property of the page."""
    subject = iri(context.base)
    if subject is None:
        return
    language = context.facts.language
    for name, content in context.facts.metas:
        prefix, colon, rest = name.partition(":")
        namespace = _NAMESPACES.get(prefix) if colon else None
        if namespace is not None and _NAME.match(rest):
            context.sink.add(subject, f"<{namespace}{rest}>", literal(content, language))
