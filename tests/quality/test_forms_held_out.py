"""Search form detection on real annotated pages, the half of the hosts that no weight was learned from.

The pages are in the wheel of the PyPI package formasaurus: `pip install --no-deps formasaurus==0.10.0`. It is found
without being imported, since its import needs scikit-learn, tldextract and more, none of which is needed here.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
from pathlib import Path

import pytest

from quadloom.crawling.topical.forms.classifier import SearchForm, find_search_form
from quadloom.crawling.topical.forms.html_forms import Form, read_forms
from quadloom.model.url import host_of, site_of

_SPEC = importlib.util.find_spec("formasaurus")
pytestmark = pytest.mark.skipif(
    _SPEC is None, reason="annotated pages missing: pip install --no-deps formasaurus==0.10.0"
)
UNJUDGED = ("X", "-")  # not annotated, or skipped by the annotator


def held_out() -> list[tuple[str, str, list[str], list[dict[str, str]], bytes]]:
    """(name, url, labels, field labels, html) of the test half; the split is that of tools/train_form_weights.py."""
    assert _SPEC is not None
    assert _SPEC.origin is not None
    data = Path(_SPEC.origin).parent / "data"
    pages = []
    for name, entry in sorted(json.loads((data / "index.json").read_text(encoding="utf-8")).items()):
        if hashlib.sha256(site_of(host_of(entry["url"])).encode()).digest()[0] % 2:
            html = (data / name).read_bytes()
            pages.append((name, entry["url"], entry["forms"], entry["visible_html_fields"], html))
    return pages


def test_page_level_precision_and_recall_on_held_out_hosts() -> None:
    """One form per page is chosen. A page whose chosen form has no annotation is left out; the strict recall counts
    such pages as misses if they have an annotated search form."""
    hits = wrong = missed = unaligned = unjudged = passed_over = 0
    boxes = right_boxes = 0
    for _name, url, labels, fields, html in held_out():
        forms = read_forms(html, url)
        if len(forms) != len(labels):
            unaligned += 1
            continue
        found = find_search_form(html, url)
        same = {labels[form.place] for form in forms if found and leads_to(form, found)}
        label = "s" if "s" in same else labels[found.place] if found else ""
        hits += label == "s"
        wrong += label not in ("", "s", *UNJUDGED)
        unjudged += label in UNJUDGED
        passed_over += label in UNJUDGED and "s" in labels
        missed += label not in ("s", *UNJUDGED) and "s" in labels
        if found and label == "s" and "qq" in fields[found.place].values():
            boxes += 1
            right_boxes += fields[found.place].get(found.query_field) == "qq"
    precision, recall = hits / (hits + wrong), hits / (hits + missed)
    strict = hits / (hits + missed + passed_over)
    print(f"\n{hits} right, {wrong} wrong, {missed} missed, {unjudged} unjudged, {unaligned} pages not aligned")
    print(f"precision {precision:.3f}, recall {recall:.3f}, strict recall {strict:.3f}, box {right_boxes}/{boxes}")
    assert hits > 150
    assert unaligned <= 5
    assert precision >= 0.97
    assert recall >= 0.93
    assert strict >= 0.91
    assert right_boxes / boxes >= 0.97


def leads_to(form: Form, found: SearchForm) -> bool:
    """Whether a form asks the same place in the same way: pages often show one search twice."""
    names = {control.name for control in form.controls}
    return form.action == found.action and form.method == found.method and found.query_field in names


def test_nothing_with_side_effects_is_taken_for_a_search() -> None:
    """Logins, registrations, orders, newsletters and comments: a submission could do harm."""
    harmful = []
    for name, url, labels, _fields, html in held_out():
        found = find_search_form(html, url)
        if found and len(read_forms(html, url)) == len(labels) and labels[found.place] in "lrpcmb":
            harmful.append((name, url, labels[found.place], found.action))
    assert len(harmful) <= 2, harmful
