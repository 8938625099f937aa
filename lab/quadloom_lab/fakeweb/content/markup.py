"""A thing embedded in HTML: JSON-LD, Microdata, RDFa, OpenGraph and microformats2."""

from __future__ import annotations

import json
from html import escape
from typing import TypeAlias

from quadloom_lab.fakeweb.sites.things import SCHEMA, DateValue, Fact, Iri, Thing, Value, words_of

Json: TypeAlias = "str | int | float | list[Json] | dict[str, Json]"

JSONLD_CONTEXT = "https://schema.org"


def jsonld_tree(thing: Thing) -> dict[str, Json]:
    """The thing as a JSON-LD node object without a context."""
    node: dict[str, Json] = {"@type": thing.type}
    if thing.iri:
        node["@id"] = thing.iri
    for fact in thing.facts:
        value = _json_value(fact.value)
        if fact.name not in node:
            node[fact.name] = value
            continue
        earlier = node[fact.name]
        node[fact.name] = [*earlier, value] if isinstance(earlier, list) else [earlier, value]
    return node


def _json_value(value: Value) -> Json:
    if isinstance(value, Thing):
        return jsonld_tree(value)
    if isinstance(value, (Iri, DateValue)):
        return value.value  # the schema.org context gives these properties their types
    return value


def jsonld_script(things: list[Thing]) -> str:
    """One script element; several things share a context through @graph."""
    if len(things) == 1:
        document: dict[str, Json] = {"@context": JSONLD_CONTEXT, **jsonld_tree(things[0])}
    else:
        document = {"@context": JSONLD_CONTEXT, "@graph": [jsonld_tree(thing) for thing in things]}
    text = json.dumps(document, ensure_ascii=False, indent=1).replace("</", "<\\/")
    return f'<script type="application/ld+json">{text}</script>\n'


def broken_jsonld(script: str, how: int) -> str:
    """The same script as careless sites publish it. No strict JSON parser accepts any of the three."""
    start = script.index(">") + 1
    head, text = script[:start], script[start:-10]
    if how % 3 == 0:
        return f"{head}{text[: len(text) // 2]}</script>\n"
    if how % 3 == 1:
        return f"{head}{text[: text.rindex('}')]},,}}</script>\n"
    return f"{head}{text.replace(': ', ': undefined ', 1)}</script>\n"


def microdata(thing: Thing, itemprop: str = "", scheme: str = SCHEMA) -> str:
    """The thing as visible HTML with Microdata attributes."""
    prop = f' itemprop="{itemprop}"' if itemprop else ""
    name = f' itemid="{escape(thing.iri)}"' if thing.iri else ""
    inner = "".join(_microdata_fact(fact, scheme) for fact in thing.facts)
    return f'<div class="thing"{prop} itemscope itemtype="{scheme}{thing.type}"{name}>{inner}</div>\n'


def _microdata_fact(fact: Fact, scheme: str) -> str:
    value = fact.value
    label = f"<dt>{fact.name}</dt>"
    if isinstance(value, Thing):
        return f'<div class="part"><span class="label">{fact.name}</span>{microdata(value, fact.name, scheme)}</div>'
    if isinstance(value, Iri):
        return f'<link itemprop="{fact.name}" href="{escape(value.value)}">'
    if isinstance(value, DateValue):
        shown = f'<time itemprop="{fact.name}" datetime="{value.value}">{value.value[:10]}</time>'
        return f"<dl>{label}<dd>{shown}</dd></dl>\n"
    return f'<dl>{label}<dd><span itemprop="{fact.name}">{escape(str(value))}</span></dd></dl>\n'


def rdfa(thing: Thing, rel: str = "") -> str:
    """The thing as visible HTML with RDFa Lite attributes."""
    prop = f' property="{rel}"' if rel else f' vocab="{SCHEMA}"'
    name = f' resource="{escape(thing.iri)}"' if thing.iri else ""
    inner = "".join(_rdfa_fact(fact) for fact in thing.facts)
    return f'<div class="thing"{prop} typeof="{thing.type}"{name}>{inner}</div>\n'


def _rdfa_fact(fact: Fact) -> str:
    value = fact.value
    if isinstance(value, Thing):
        return f'<div class="part"><span class="label">{fact.name}</span>{rdfa(value, fact.name)}</div>'
    if isinstance(value, Iri):
        return f'<link property="{fact.name}" href="{escape(value.value)}">'
    if isinstance(value, DateValue):
        shown = f'<time property="{fact.name}" datetime="{value.value}">{value.value[:10]}</time>'
        return f"<dl><dt>{fact.name}</dt><dd>{shown}</dd></dl>\n"
    return f'<dl><dt>{fact.name}</dt><dd property="{fact.name}">{escape(str(value))}</dd></dl>\n'


def dublin_core(thing: Thing, url: str) -> str:
    """RDFa 1.1 beyond Lite: a prefix declaration, `about`, CURIEs and a datatype."""
    return (
        '<div prefix="dct: http://purl.org/dc/terms/ xsd: http://www.w3.org/2001/XMLSchema#" '
        f'about="{escape(url)}"><span property="dct:title">{escape(thing.text("name"))}</span> '
        '<span property="dct:extent" datatype="xsd:integer" content="1">one page</span> '
        f'<link rel="dct:subject" href="{escape(thing.iri)}"></div>\n'
    )


def plain_facts(thing: Thing) -> str:
    """The facts for people only."""
    rows = "".join(
        f"<dt>{fact.name}</dt><dd>{escape(words_of(fact.value))}</dd>\n"
        for fact in thing.facts
        if not isinstance(fact.value, Iri) and words_of(fact.value)
    )
    return f'<dl class="facts">{rows}</dl>\n'


def opengraph(thing: Thing, url: str, site: str, image: str) -> str:
    kind = {"Book": "book", "Person": "profile", "NewsArticle": "article", "Product": "product"}.get(
        thing.type, "website"
    )
    pairs = (
        ("og:type", kind),
        ("og:title", thing.text("name")),
        ("og:url", url),
        ("og:site_name", site),
        ("og:image", image),
        ("og:description", thing.text("description")),
    )
    return "".join(f'<meta property="{name}" content="{escape(value)}">\n' for name, value in pairs)


def microformat(thing: Thing, url: str) -> str:
    """h-card, h-event or h-entry, whichever fits the thing best."""
    name = escape(thing.text("name"))
    link = f'<data class="u-url" value="{escape(url)}"></data>'
    if thing.type == "Person":
        return (
            f'<div class="h-card"><span class="p-name">{name}</span> <span class="p-job-title">'
            f'{escape(thing.text("jobTitle"))}</span> <time class="dt-bday" datetime="{thing.text("birthDate")}">'
            f"{thing.text('birthDate')}</time>{link}</div>\n"
        )
    if thing.type == "Event":
        return (
            f'<div class="h-event"><span class="p-name">{name}</span> '
            f'<time class="dt-start" datetime="{thing.text("startDate")}">{thing.text("startDate")[:10]}</time> '
            f'<span class="p-location">{escape(thing.text("location"))}</span>{link}</div>\n'
        )
    return (
        f'<article class="h-entry"><h2 class="p-name">{name}</h2>'
        f'<p class="p-summary">{escape(thing.text("description"))}</p>{link}</article>\n'
    )
