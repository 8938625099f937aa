"""`/vocabularies`: which classes and properties are used, and how often."""

from __future__ import annotations

from quadloom.web.asks import Ask, View
from quadloom.web.usage import usage


def vocabularies_page(ask: Ask) -> View:
    return View("vocabularies.html", {"vocabularies": usage(ask.desk).vocabularies()})
