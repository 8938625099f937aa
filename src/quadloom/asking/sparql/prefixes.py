"""Prefixes of common vocabularies, so that nobody has to declare them.

This is the only table for SPARQL, search, entity views and exports. A query's own PREFIX lines win over it. schema.org
is written with both schemes on the web; `schema:` stands for the http form, which its own context uses, and filters by
type accept both (`type_iris`).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import lru_cache

PREFIXES: dict[str, str] = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "schema": "http://schema.org/",
    "schemas": "https://schema.org/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "dct": "http://purl.org/dc/terms/",
    "dcat": "http://www.w3.org/ns/dcat#",
    "dctype": "http://purl.org/dc/dcmitype/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "prov": "http://www.w3.org/ns/prov#",
    "void": "http://rdfs.org/ns/void#",
    "sioc": "http://rdfs.org/sioc/ns#",
    "doap": "http://usefulinc.com/ns/doap#",
    "org": "http://www.w3.org/ns/org#",
    "og": "http://ogp.me/ns#",
    "article": "http://ogp.me/ns/article#",
    "book": "http://ogp.me/ns/book#",
    "profile": "http://ogp.me/ns/profile#",
    "video": "http://ogp.me/ns/video#",
    "music": "http://ogp.me/ns/music#",
    "product": "http://ogp.me/ns/product#",
    "gr": "http://purl.org/goodrelations/v1#",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
    "geosparql": "http://www.opengis.net/ont/geosparql#",
    "ical": "http://www.w3.org/2002/12/cal/ical#",
    "event": "http://purl.org/NET/c4dm/event.owl#",
    "time": "http://www.w3.org/2006/time#",
    "mo": "http://purl.org/ontology/mo/",
    "bibo": "http://purl.org/ontology/bibo/",
    "cc": "http://creativecommons.org/ns#",
    "rss": "http://purl.org/rss/1.0/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "as": "https://www.w3.org/ns/activitystreams#",
    "mf": "http://microformats.org/profile/",
    "xhv": "http://www.w3.org/1999/xhtml/vocab#",
    "iana": "http://www.iana.org/assignments/relation/",
    "sh": "http://www.w3.org/ns/shacl#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "qb": "http://purl.org/linked-data/cube#",
    "dbo": "http://dbpedia.org/ontology/",
    "dbr": "http://dbpedia.org/resource/",
    "wd": "http://www.wikidata.org/entity/",
    "wdt": "http://www.wikidata.org/prop/direct/",
    "ql": "urn:quadloom:",
}
_BY_LENGTH = sorted(((iri, prefix) for prefix, iri in PREFIXES.items() if prefix != "dct"), key=lambda it: -len(it[0]))
# A bare `Event` is looked up in these: vocabularies that define classes people search for.
_CLASS_SPACES = tuple(
    PREFIXES[name]
    for name in ("schema", "schemas", "foaf", "vcard", "skos", "dcat", "dctype", "prov", "sioc", "doap", "org", "gr",
                 "ical", "event", "time", "mo", "bibo", "rss", "as", "dbo", "owl", "rdfs", "mf", "og")
)  # fmt: skip


def expand(name: str) -> str:
    """`schema:Event` → its IRI; an IRI, in angle brackets or bare, is itself; anything else is returned unchanged."""
    if name.startswith("<") and name.endswith(">"):
        return name[1:-1]
    prefix, colon, local = name.partition(":")
    if colon and not local.startswith("//") and prefix in PREFIXES:
        return PREFIXES[prefix] + local
    return name


@lru_cache(maxsize=8192)  # pages show the same few hundred again and again; a lookup costs 3 µs
def shorten(iri: str) -> str:
    """`http://schema.org/Event` → `schema:Event`; an IRI of an unknown vocabulary is returned as it is."""
    for space, prefix in _BY_LENGTH:
        if iri.startswith(space):
            local = iri[len(space) :]
            return f"{prefix}:{local}" if not local or local.replace("_", "").replace("-", "").isalnum() else iri
    return iri


def local_name(name: str) -> str:
    """The last part of an IRI or of a prefixed name: `Book`."""
    return name[max(name.rfind("#"), name.rfind("/"), name.rfind(":")) + 1 :] or name


def nearest(name: str, iris: Sequence[str]) -> str:
    """The one of these, shortened, whose last part is spelt most like that of the name; empty if none is near. The
    first of `iris` wins over others of the same last part."""
    names = {local_name(iri).lower(): shorten(iri) for iri in reversed(iris)}
    near = difflib.get_close_matches(local_name(name).lower(), names, n=1, cutoff=0.7)
    return names[near[0]] if near else ""


def type_iris(name: str) -> tuple[str, ...]:
    """All IRIs that a person may mean by a type's name: `Event`, `schema:Event` or an IRI."""
    iri = expand(name)
    if ":" not in iri:
        return tuple(space + iri for space in _CLASS_SPACES)
    return both_schemes(iri)


def vocabulary_iris(name: str) -> tuple[str, ...]:
    """A vocabulary by prefix (`schema`, `schema:`) or by namespace IRI."""
    return both_schemes(PREFIXES.get(name.rstrip(":"), expand(name)))


def both_schemes(iri: str) -> tuple[str, ...]:
    """An IRI of schema.org under http and https, which are one vocabulary; any other IRI alone."""
    if iri.startswith("http://schema.org/"):
        return iri, "https" + iri[4:]
    if iri.startswith("https://schema.org/"):
        return iri, "http" + iri[5:]
    return (iri,)
