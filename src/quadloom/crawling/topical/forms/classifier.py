"""Finds the search form of a page: `find_search_form(html, url)`.

Every form is turned into features (`features`) and classified by a logistic regression. Its weights were learned
offline on one half of a public collection of annotated pages; tests/quality/test_forms_held_out.py measures the other
half. The classification is also a safeguard: a form with a password, a file, a long text or a mail box as its only
field is never a search, whatever its words say, so nothing that logs in, orders, subscribes or posts is ever submitted.
"""

from __future__ import annotations

import math
import re
from functools import cache
from importlib.resources import files
from urllib.parse import urlencode

import msgspec

from quadloom.crawling.topical.forms.features import BUTTONS, NAMES, best_box, features, text_boxes
from quadloom.crawling.topical.forms.html_forms import Control, Form, read_forms

_TOKEN = re.compile(r"(?i)csrf|xsrf|token|nonce|authenticity|__viewstate|__eventvalidation|form_build_id")
_EVERYTHING = re.compile(
    r"(?i)\W*(all|any|every|entire|whole|alle[srn]?|alles|gesamt|überall|tou[ts]|toutes|partout|tod[oa]s?|tutt[oi]|"
    r"overal|allt|alla|kaikki|wszystk\w*|vše|všechn\w*|все|всё|везде|всюди|όλ\w*|tümü|hepsi|الكل|הכל|सभी|全部|全て|すべて|所有|전체)\b"
)
MOST_ALTERNATIVES = 3
_NEVER = frozenset(("password", "file", "textarea"))


class SearchForm(msgspec.Struct, frozen=True):
    """How to query a site's own search.

    `fields`: what an untouched form sends in addition to the query: hidden inputs, defaults of selects, checked boxes,
    and the first submit button (an image button as `name.x` and `name.y`). `repeated`: further values of the same
    names. `has_token`: a field changes with every page view, so the form must be read again before each submission.
    """

    action: str
    method: str  # "get" | "post"
    query_field: str
    fields: dict[str, str] = {}
    repeated: tuple[tuple[str, str], ...] = ()
    has_token: bool = False
    multipart: bool = False
    score: float = 0.0  # estimated probability that this is a search form
    place: int = 0  # number of the form on its page, from 0
    choices: tuple[tuple[str, tuple[str, ...]], ...] = ()  # selects and what else they offer, "everything" first

    def alternatives(self) -> list[SearchForm]:
        """The same form with other options of a select: one that stands for everything, then those after the default.
        Each select is varied alone."""
        return [
            msgspec.structs.replace(self, fields={**self.fields, name: value}, choices=())
            for name, values in self.choices
            for value in values
        ][:MOST_ALTERNATIVES]

    def pairs(self, query: str) -> list[tuple[str, str]]:
        """All fields to send for a query, in the order of the page."""
        filled = {**self.fields, self.query_field: query}
        return [*filled.items(), *self.repeated]

    def url_for(self, query: str) -> str:
        """The URL of a GET form for a query. The query string of the action is dropped, as browsers do."""
        return f"{self.action.partition('?')[0]}?{urlencode(self.pairs(query))}"


class FormWeights(msgspec.Struct, frozen=True):
    """The output of `tools/train_form_weights.py`. `threshold`: least probability of a search form."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    threshold: float


def find_search_form(html: bytes | str, url: str) -> SearchForm | None:
    """The search form of a page, or None if no form is likely enough. Never raises on bad HTML."""
    best: tuple[float, Form] | None = None
    for form in read_forms(html, url):
        score = probability(form)
        if score >= weights().threshold and (best is None or score > best[0] + 1e-3):
            best = (score, form)
    return _search_form(best[1], best[0]) if best else None


def probability(form: Form) -> float:
    """Estimated probability that a form is a search; 0 if it must never be submitted."""
    if not is_harmless(form):
        return 0.0
    total = sum(weight * value for weight, value in zip(weights().weights, features(form), strict=True))
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))


def is_harmless(form: Form) -> bool:
    """Whether submitting the form only gives an answer and has no other effect, judging by its controls."""
    kinds = {control.kind for control in form.controls}
    boxes = text_boxes(form)
    return not kinds & _NEVER and bool(boxes) and not all(control.kind in ("email", "tel") for control in boxes)


@cache
def weights() -> FormWeights:
    data = files("quadloom.crawling.topical").joinpath("data/form_weights.json").read_bytes()
    loaded = msgspec.json.decode(data, type=FormWeights)
    if loaded.names != NAMES:
        raise AssertionError("form_weights.json was trained for other features; run tools/train_form_weights.py")
    return loaded


def _search_form(form: Form, score: float) -> SearchForm | None:
    box = best_box(form)
    if box is None or not box.name:
        return None  # only a script fills it in; the caller tries other channels
    fields: dict[str, str] = {}
    repeated: list[tuple[str, str]] = []
    pressed = False
    for control in form.controls:
        if control is box:
            fields[control.name] = ""
            continue
        if not control.sent or control.kind in ("button", "reset") or (control.kind in BUTTONS and pressed):
            continue
        pressed = pressed or control.kind in BUTTONS
        for name, value in _sent(control):
            if name in fields:
                repeated.append((name, value))
            else:
                fields[name] = value
    return SearchForm(
        action=form.action,
        method=form.method,
        query_field=box.name,
        fields=fields,
        repeated=tuple(repeated),
        has_token=form.method == "post" and any(c.kind == "hidden" and _TOKEN.search(c.name) for c in form.controls),
        multipart=form.multipart and form.method == "post",
        score=score,
        place=form.place,
        choices=tuple((c.name, _others(c)) for c in form.controls if c.kind == "select" and c.sent and c.options > 1),
    )


def _others(select: Control) -> tuple[str, ...]:
    """Options besides the default; those that stand for everything come first."""
    others = [(value, words) for value, words in select.choices if value != select.value]
    return tuple(value for value, words in sorted(others, key=lambda option: not _EVERYTHING.match(option[1])))


def _sent(control: Control) -> list[tuple[str, str]]:
    if control.kind == "image":
        return [(f"{control.name}.x", "1"), (f"{control.name}.y", "1")]
    if control.kind not in ("hidden", "select", "checkbox", "radio", "submit"):
        return [(control.name, "")]  # another text box: its default value is only an example
    return [(control.name, control.value)]
