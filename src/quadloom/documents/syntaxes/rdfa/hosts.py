"""What differs between the host languages of RDFa: one record each.

RDFa Core gives the rules; each host language adds some. A record of switches keeps the processor free of host names.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import msgspec

HostName = Literal["html5", "html4", "xhtml1", "xhtml5", "xml", "svg"]
Version = Literal["1.1", "1.0"]

XHV = "http://www.w3.org/1999/xhtml/vocab#"
XHTML = "http://www.w3.org/1999/xhtml"

_CORE_TERMS = MappingProxyType(
    {
        "describedby": "http://www.w3.org/2007/05/powder-s#describedby",
        "license": f"{XHV}license",
        "role": f"{XHV}role",
    }
)
# XHTML+RDFa 1.1, section 3: the link types that XHTML reserves; RDFa 1.0 has the same list (section 9.3).
_XHTML_WORDS = (
    "alternate appendix bookmark cite chapter contents copyright first glossary help icon index itsRules last license "
    "meta next p3pv1 prev previous role section start stylesheet subsection top up"
)
_XHTML_TERMS = {word.lower(): XHV + word for word in _XHTML_WORDS.split()}


class HostLanguage(msgspec.Struct, frozen=True):
    """`terms` are the words that stand for an IRI without `@vocab`."""

    name: HostName
    terms: Mapping[str, str] = _CORE_TERMS
    html_parser: bool = False
    plain_lang: bool = False  # `@lang` counts, not only `@xml:lang`
    base_element: bool = False
    inherit_head_body: bool = False  # head and body never make a new subject of their own
    mute_link_words: bool = False  # with `@property`, words in `@rel`/`@rev` are link types of HTML, not predicates
    datetime: bool = False
    copies_patterns: bool = False
    xml_base: bool = False
    embedded_rdf: bool = False


_HTML5 = HostLanguage(
    "html5", html_parser=True, plain_lang=True, base_element=True, inherit_head_body=True, mute_link_words=True,
    datetime=True, copies_patterns=True,
)  # fmt: skip
_HOSTS = (
    _HTML5,
    msgspec.structs.replace(_HTML5, name="html4", datetime=False),
    msgspec.structs.replace(_HTML5, name="xhtml5", html_parser=False),
    HostLanguage("xhtml1", {**_CORE_TERMS, **_XHTML_TERMS}, plain_lang=True, base_element=True, inherit_head_body=True),
    HostLanguage("xml", xml_base=True, embedded_rdf=True),
    HostLanguage("svg", xml_base=True, embedded_rdf=True),
)
HOSTS: dict[HostName, HostLanguage] = {host.name: host for host in _HOSTS}

# RDFa 1.0 is defined for XHTML alone; other hosts are read by the same rules.
LINK_TYPES_1_0 = _XHTML_TERMS

# RDFa Core Initial Context (https://www.w3.org/2011/rdfa-context/rdfa-1.1), version of 2020-05-09.
INITIAL_PREFIXES = {
    "as": "https://www.w3.org/ns/activitystreams#",
    "csvw": "http://www.w3.org/ns/csvw#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dqv": "http://www.w3.org/ns/dqv#",
    "duv": "https://www.w3.org/ns/duv#",
    "grddl": "http://www.w3.org/2003/g/data-view#",
    "jsonld": "http://www.w3.org/ns/json-ld#",
    "ldp": "http://www.w3.org/ns/ldp#",
    "ma": "http://www.w3.org/ns/ma-ont#",
    "oa": "http://www.w3.org/ns/oa#",
    "odrl": "http://www.w3.org/ns/odrl/2/",
    "org": "http://www.w3.org/ns/org#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "qb": "http://purl.org/linked-data/cube#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfa": "http://www.w3.org/ns/rdfa#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "rif": "http://www.w3.org/2007/rif#",
    "rr": "http://www.w3.org/ns/r2rml#",
    "sd": "http://www.w3.org/ns/sparql-service-description#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "skosxl": "http://www.w3.org/2008/05/skos-xl#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "time": "http://www.w3.org/2006/time#",
    "void": "http://rdfs.org/ns/void#",
    "wdr": "http://www.w3.org/2007/05/powder#",
    "wdrs": "http://www.w3.org/2007/05/powder-s#",
    "xhv": XHV,
    "xml": "http://www.w3.org/XML/1998/namespace",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "cc": "http://creativecommons.org/ns#",
    "ctag": "http://commontag.org/ns#",
    "dc": "http://purl.org/dc/terms/",
    "dc11": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "gr": "http://purl.org/goodrelations/v1#",
    "ical": "http://www.w3.org/2002/12/cal/icaltzd#",
    "og": "http://ogp.me/ns#",
    "rev": "http://purl.org/stuff/rev#",
    "schema": "http://schema.org/",
    "sioc": "http://rdfs.org/sioc/ns#",
    "v": "http://rdf.data-vocabulary.org/#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
}
