"""The codes that findings can have, so that a misspelt one is refused."""

from __future__ import annotations

import difflib
from collections.abc import Collection
from importlib.metadata import entry_points
from typing import get_args

from quadloom.documents.checks.codes import codes as check_codes
from quadloom.documents.syntaxes.plugins import GROUP as PLUG_INS
from quadloom.errors import UsageError
from quadloom.model.page import FailureKind

_MIN_SIMILARITY = 0.8  # from 0 to 1
# Codes of the other phases; docs/reference/findings.md describes them.
_PHASE_CODES = """
attributes bad-bytes entities extractor-failed feed-date feed-not-well-formed fetch-cut fetch-incomplete
grddl-document grddl-not-allowed grddl-not-loaded grddl-too-many gzip-damaged gzip-too-large import-file
internal-error iri-too-long json jsonfeed jsonfeed-items jsonld-bom jsonld-cdata jsonld-comment
jsonld-control-characters jsonld-empty jsonld-entities jsonld-invalid jsonld-spaces jsonld-term microdata-itemref-limit
microdata-itemref-loop microdata-too-deep microformats-limit needs-scripts nesting no-data noindex
office-invalid pdf-invalid pdf-locked pdf-not-read pdf-without-text plugin-broken
quarantined rdf-attributes rdf-encoding rdf-entities rdf-nesting rdf-syntax rdf-truncated rdfa-limit rdfa-vocabulary
render-failed rendered service-answer-too-large service-failed service-type sitemap-loc too-deep too-many-attributes
too-many-links too-many-literals too-many-quads transform-killed warc-cut warc-record worker-replaced wrong-charset
wrong-content-type wrong-extension xhtml-not-well-formed xml xml-external-entity xml-invalid xml-schema xslt-failed
xslt-folder xslt-forbidden xslt-imports xslt-invalid xslt-missing xslt-not-rdf xslt-result-too-large xslt-too-large
"""


def all_codes() -> frozenset[str]:
    """Every code that a finding can have, without those of plug-ins."""
    return frozenset((*check_codes(), *_PHASE_CODES.split(), *(f"fetch-{kind}" for kind in get_args(FailureKind))))


def refuse_unknown(codes: Collection[str], in_use: Collection[str]) -> None:
    """Raise `UsageError` for a code that no finding can have: a misspelt one must not pass a check. Plug-ins have codes
    of their own, so with one installed only what looks misspelt is refused."""
    known = {*all_codes(), *in_use}
    for code in (code for code in codes if code not in known):
        near = difflib.get_close_matches(code, known, n=1, cutoff=_MIN_SIMILARITY)
        if near or not entry_points(group=PLUG_INS):
            hint = f"did you mean {near[0]}?" if near else "to list the codes in use: `quadloom findings`"
            raise UsageError(f"there is no finding {code!r}", hint=hint)
