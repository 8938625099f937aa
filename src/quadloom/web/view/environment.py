"""The environment of the templates: escaping is on, and a name that is missing is an error."""

from __future__ import annotations

import re
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from quadloom.asking.sparql.prefixes import shorten
from quadloom.asking.things.paths import canonical, type_name, words
from quadloom.web.view import filters, terms

_FOLDER = Path(__file__).parents[1]
_FILTERS = (
    filters.counted, filters.date_words, filters.instant, filters.moment, filters.number, filters.percent,
    filters.place, filters.seconds, filters.sentence, filters.size, filters.snippet, filters.span, filters.when,
    canonical, filters.with_links, terms.is_web, type_name, words,
)  # fmt: skip
# No character of HTML (C0, C1), and directional overrides, which make one address look like another.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def template_environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,  # the files are not checked for each page
    )
    environment.filters.update({each.__name__: each for each in _FILTERS})
    environment.filters.update(short=shorten, datatype=terms.shown_datatype, dir=terms.direction)
    return environment


def report_document(template: str, **names: object) -> str:
    """An HTML file that needs nothing else: `style` is the style sheet of the site."""
    style = Markup((_FOLDER / "static" / "quadloom.css").read_text(encoding="utf-8"))
    document = template_environment().get_template(template).render(style=style, **names)
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", document)
