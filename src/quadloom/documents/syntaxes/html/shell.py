"""Whether a page is an empty shell: markup that says nothing until its scripts have run.

Pure, and cautious: a page with text of its own is never called a shell, so that `crawl.browser = "auto"` starts the
browser for few pages. What it cannot see is data that scripts add to a page that also has text; `"always"` reads that.
"""

from __future__ import annotations

import re

from selectolax.lexbor import LexborHTMLParser, LexborNode

ENOUGH_TEXT = 400  # characters of visible text that make a page readable without scripts
ENOUGH_LINKS = 10
LITTLE_TEXT = 60
_DATA_TYPES = ("json", "template", "importmap", "speculationrules", "text/x-", "text/html", "text/plain")
_MOUNTS = (
    "#root, #app, #__next, #__nuxt, #___gatsby, #svelte, #react-root, #app-root, #main-app, #q-app,"
    " [data-reactroot], [ng-app], [data-ng-app], [ng-version], app-root"
)
_UNFILLED = re.compile(r"\{\{[^{}]{1,200}\}\}")
_ASKS_FOR_SCRIPTS = re.compile(r"java\s*script", re.IGNORECASE)
_INVISIBLE = ["script", "style", "noscript", "template", "svg", "iframe", "object"]


def why_shell(body: bytes, *, little_text: int = LITTLE_TEXT) -> str:
    """The reason to run the scripts of an HTML page, in a few words; empty if it says something without them.
    `little_text`: fewer characters than this are as good as none."""
    tree = LexborHTMLParser(body)
    if tree.body is None or not any(_is_program(script) for script in tree.css("script")):
        return ""
    asks = any(_ASKS_FOR_SCRIPTS.search(node.text()) for node in tree.css("noscript"))
    mounts = tree.css(_MOUNTS)
    tree.body.strip_tags(_INVISIBLE)
    text = " ".join(tree.body.text(separator=" ").split())
    if _UNFILLED.search(text):
        return "its text is a template that scripts fill in"
    if len(text) >= ENOUGH_TEXT or len(tree.css("a[href]")) >= ENOUGH_LINKS:
        return ""
    if any(not mount.text().strip() for mount in mounts):
        return "an empty element waits for scripts"
    if asks:
        return "it has little text and asks for JavaScript"
    return "it has scripts and no text" if len(text) < little_text else ""


def _is_program(script: LexborNode) -> bool:
    kind = (script.attributes.get("type") or "").lower()
    return not any(word in kind for word in _DATA_TYPES)
