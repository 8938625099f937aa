"""Whether elements can be read in C on this machine (`quadloom.documents.native.elements`).

That part walks lexbor's own tree through its public functions, which it looks up in the library that selectolax has
loaded. It is used if it was built, if all functions are there, and if it says the same as `ElementNodes` about a small
page. A function whose parameters changed would crash the process, so with another version of selectolax than
`TESTED_PARSER` a child process compares the two first.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import selectolax
import selectolax.lexbor
from selectolax.lexbor import LexborHTMLParser

from quadloom.documents.syntaxes.html.element_nodes import COMMON_TAGS, ElementNodes

if TYPE_CHECKING:
    from quadloom.documents.syntaxes.html.elements import Elements

TESTED_PARSER = "1.0.2"
_TRIAL = (sys.executable, "-m", __name__)
_TRIAL_SECONDS = 30
# Names that extractors ask attributes for: one Python string serves all pages.
_ATTRIBUTE_NAMES = (
    "about alt aria-hidden aria-label charset class content data datatype datetime height hidden href hreflang "
    "http-equiv id inlist itemid itemprop itemref itemscope itemtype lang media name onclick prefix property rel "
    "resource rev role sizes src srcset style tabindex target title type typeof value vocab width xml:lang"
)
_SAMPLE = (
    "<!doctype html><html lang=en><head><title>T</title><meta name=a content='b &amp; c'></head><body id><nav>n"
    "<a href=/x>x</a></nav><main class='k'>w<b>or</b>d<!-- c --> <p>sch\u00f6n\u00a0 \u200b1<br>2</p><svg>"
    "<foreignObject a:b=c/></svg><x-y z>\U0001f600</x-y></main><footer>f</footer>"
)


def native_elements(
    parser: str = selectolax.__version__, trial: Sequence[str] = _TRIAL
) -> Callable[[LexborHTMLParser], Elements] | str:
    """The function that reads a tree in C, or why there is none. `parser` is the version of selectolax, `trial` the
    command that ends with 0 if both implementations agree."""
    try:
        from quadloom.documents.native import elements as native

        native.bind(
            selectolax.lexbor.__file__,
            {name: number for number, name in COMMON_TAGS.items()},
            {name: name for name in _ATTRIBUTE_NAMES.split()},
        )
    except ImportError as error:
        return str(error)
    if parser != TESTED_PARSER and not _succeeds(trial):
        return f"selectolax {parser} is not the tested {TESTED_PARSER}, and it reads its trees in another way"
    tree = LexborHTMLParser(_SAMPLE)
    if _description(native.read(tree)) != _description(ElementNodes(tree)):
        return "it reads the trees of this parser in another way"
    return native.read


def _succeeds(command: Sequence[str]) -> bool:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=_TRIAL_SECONDS, check=False)
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def _description(elements: Elements) -> list[object]:
    """All that an implementation says about a small page."""
    everything = list(range(len(elements)))
    said: list[object] = [
        elements.named("a"),
        elements.having(("class", "z")),
        elements.values(everything, ("class", "id", "content")),
        elements.texts(everything, 3),
        elements.nesting(everything[::2]),
        [(elements.tag(at), elements.parent(at), elements.attributes(at), elements.text(at)) for at in everything],
    ]
    view = elements.view(0)
    view.leave_out(elements.named("nav"))
    said += [(view.place(at), view.parent(at), view.size(at), view.text(at)) for at in everything]
    return [*said, view.blocks(("a", "b"))]


if __name__ == "__main__":
    sys.exit(isinstance(native_elements(TESTED_PARSER), str))
