"""The table of all syntaxes: which extractors read which kind, in which order.

`html` comes first because the others use its base and language. A new syntax is one line here.
"""

from __future__ import annotations

from quadloom.syntaxes import html, html_meta, opengraph, plain_text, readers
from quadloom.syntaxes.registry import Extractor, Registry

_HTML = Extractor("html", html.read)
_META = Extractor("meta", html_meta.read)
_OPEN_GRAPH = Extractor("opengraph", opengraph.read)
_RDFA = Extractor("rdfa", readers.read_rdfa)
_RDFA_XML = Extractor("rdfa", readers.read_rdfa_xml)
_MICRODATA = Extractor("microdata", readers.read_microdata)
_MICROFORMATS = Extractor("microformats", readers.read_microformats)
_RDF_FILE = Extractor("rdf", readers.read_rdf_file)
_TEXT = Extractor("text", plain_text.read)

SYNTAXES = Registry(
    {
        "html": (_HTML, _META, _OPEN_GRAPH, _MICRODATA, _RDFA, _MICROFORMATS),
        "xhtml": (_HTML, _META, _OPEN_GRAPH, _MICRODATA, _RDFA_XML, _MICROFORMATS),
        "svg": (_RDFA_XML,),
        "turtle": (_RDF_FILE,),
        "trig": (_RDF_FILE,),
        "ntriples": (_RDF_FILE,),
        "nquads": (_RDF_FILE,),
        "rdfxml": (_RDF_FILE,),
        "text": (_TEXT,),
    }
)
