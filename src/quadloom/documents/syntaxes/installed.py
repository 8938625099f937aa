"""The table of all syntaxes: which extractors read which kind, in which order.

`html` comes first because the others use its base and language. A new syntax is one line here.
"""

from __future__ import annotations

from quadloom.documents.syntaxes import jsonld, microdata, microformats, rdf, rdfa
from quadloom.documents.syntaxes.feeds import json_feed
from quadloom.documents.syntaxes.feeds import sitemaps as sitemaps_rdf
from quadloom.documents.syntaxes.feeds import xml_feeds as feeds
from quadloom.documents.syntaxes.files import office, pdf
from quadloom.documents.syntaxes.html import meta as html_meta
from quadloom.documents.syntaxes.html import page as html
from quadloom.documents.syntaxes.html import text as html_text
from quadloom.documents.syntaxes.registry import Extractor, Registry
from quadloom.documents.syntaxes.xml import generic as generic_xml
from quadloom.documents.syntaxes.xml import grddl, xslt
from quadloom.documents.syntaxes.xml import stylesheet_folder as xslt_folder

_HTML = Extractor("html", html.read)
_META = Extractor("meta", html_meta.read_meta, ("content",))
_OPEN_GRAPH = Extractor("opengraph", html_meta.read_opengraph, ("content",))
_RDFA = Extractor("rdfa", rdfa.read, ("property", "typeof", "vocab", "rel", "rev"))
_RDFA_XML = Extractor("rdfa", rdfa.read_xml)
_MICRODATA = Extractor("microdata", microdata.read, ("itemscope", "itemprop"))
_MICROFORMATS = Extractor("microformats", microformats.read, tuple(f".{name}" for name in microformats.ROOT_NAMES))
_JSONLD_SCRIPTS = Extractor("jsonld", jsonld.read_scripts)
_JSONLD = Extractor("jsonld", jsonld.read)
_RDF_FILE = Extractor("rdf", rdf.read, by_kind=True)
_TEXT = Extractor("text", html_text.read_plain)
_RSS = Extractor("rss", feeds.read)
_RSS_RDF = Extractor("rdf", feeds.read_rdf)
_ATOM = Extractor("atom", feeds.read)
_JSON_FEED = Extractor("jsonfeed", json_feed.read)
_SITEMAP = Extractor("sitemap", sitemaps_rdf.read)
_OPML = Extractor("opml", feeds.read_opml)
_OPEN_SEARCH = Extractor("opensearch", xslt.read)
_SVG = Extractor("svg", xslt.read)
_STYLESHEETS = Extractor(xslt_folder.SYNTAX, xslt_folder.read, is_wanted=lambda settings: settings.stylesheets != "")
_GRDDL = Extractor(grddl.SYNTAX, grddl.read_page, ("profile", "xmlns:"))
_GRDDL_XML = Extractor(grddl.SYNTAX, grddl.read)  # the transformation may be that of its namespace, without a sign
_PDF = Extractor(pdf.SYNTAX, pdf.read)
_OFFICE = Extractor(office.SYNTAX, office.read)
_GENERIC = Extractor(generic_xml.SYNTAX, generic_xml.read)  # last: only if no other syntax stated anything
_HEAD = (_HTML, _META, _OPEN_GRAPH, _JSONLD_SCRIPTS, _MICRODATA)

SYNTAXES = Registry(
    {
        "html": (*_HEAD, _RDFA, _MICROFORMATS, _GRDDL, _STYLESHEETS),
        "xhtml": (*_HEAD, _RDFA_XML, _MICROFORMATS, _GRDDL, _STYLESHEETS),
        "svg": (_SVG, _RDFA_XML, _STYLESHEETS),
        "xml": (_RDFA_XML, _STYLESHEETS, _GRDDL_XML, _GENERIC),
        "wsdl": (_STYLESHEETS, _GRDDL_XML, _GENERIC),
        "xsd": (_STYLESHEETS, _GRDDL_XML, _GENERIC),
        "xslt": (_STYLESHEETS, _GENERIC),
        "opensearch": (_OPEN_SEARCH, _STYLESHEETS),
        "rss": (_RSS, _RSS_RDF, _STYLESHEETS),
        "atom": (_ATOM, _STYLESHEETS),
        "jsonfeed": (_JSON_FEED,),
        "opml": (_OPML, _STYLESHEETS),
        "sitemap": (_SITEMAP, _STYLESHEETS),
        "sitemapindex": (_SITEMAP, _STYLESHEETS),
        "jsonld": (_JSONLD,),
        "turtle": (_RDF_FILE,),
        "trig": (_RDF_FILE,),
        "ntriples": (_RDF_FILE,),
        "nquads": (_RDF_FILE,),
        "rdfxml": (_RDF_FILE,),
        "text": (_TEXT,),
        "pdf": (_PDF,),
        "office": (_OFFICE,),
    }
)
