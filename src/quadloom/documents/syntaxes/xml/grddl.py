"""GRDDL: documents that name the stylesheets which turn them into RDF.

Three ways (W3C Recommendation of 2007): an XML root with `data-view:transformation`; a page whose head has the GRDDL
profile and links with `rel="transformation"`; and a namespace or profile whose own document names a
transformation for all that use it. A stylesheet is a program of a stranger, so by default only those run that
Quadloom has itself (`known`). The setting `allow` adds what `transform.grddl_allow` names, by URL or, safer, by the
SHA-256 of the file. All run in the sandbox of `xslt`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import translate
from functools import lru_cache
from hashlib import sha256
from typing import Literal

import pyoxigraph as ox
from lxml import etree

from quadloom.documents.syntaxes.rdf import files as rdf_files
from quadloom.documents.syntaxes.registry import Context, Loader
from quadloom.documents.syntaxes.terms import RDF, join
from quadloom.documents.syntaxes.xml.xslt import MAX_STYLESHEET_BYTES, Imports, Stylesheet, bundled, compiled
from quadloom.errors import SyntaxInvalid
from quadloom.model.link import Link
from quadloom.model.url import resolve
from quadloom.settings import Settings, TransformSettings

DATA_VIEW = "http://www.w3.org/2003/g/data-view"
SYNTAX = "grddl"
MAX_TRANSFORMATIONS = 8
MAX_DEPTH = 3  # a namespace document may itself need GRDDL to say what its transformation is

_XHTML = "{http://www.w3.org/1999/xhtml}"
_TRANSFORMATION = f"{{{DATA_VIEW}#}}transformation"
_NAMESPACE_WORD = f"{DATA_VIEW}#namespaceTransformation"
_PROFILE_WORD = f"{DATA_VIEW}#profileTransformation"
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"

# Transformations that many pages name, and what we have for them. An empty name: native extractors read the same data.
KNOWN: dict[str, str] = {
    "http://www.w3.org/2000/06/dc-extract/dc-extract.xsl": "",
    "http://www.w3.org/2001/sw/grddl-wg/td/RDFa2RDFXML.xsl": "",
    "http://www.w3.org/2002/12/cal/glean-hcal": "",
    "http://www.w3.org/2002/12/cal/glean-hcal.xsl": "",
    "http://www.w3.org/2006/vcard/hcard2rdf.xsl": "",
    "http://www.w3.org/2003/12/rdf-in-xhtml-xslts/grokXFN.xsl": "",
    "http://ns.inria.fr/grddl/rdfa/2008/09/03/RDFa2RDFXML.xsl": "",
    "http://sw.deri.org/2006/05/transform/xhtml2rdf.xsl": "xhtml",
}


def extract(
    body: bytes,
    *,
    url: str,
    kind: Literal["xhtml", "xml"] = "xml",
    loader: Loader | None = None,
    allow: Sequence[str] = (),
) -> bytes:
    """N-Triples of one document by the transformations it names: the known ones, and those that match `allow`."""
    transform = TransformSettings(grddl="allow" if allow else "known", grddl_allow=list(allow))
    context = Context.standalone(body, kind, url=url, settings=Settings(transform=transform), loader=loader)
    read(context)
    return context.sink.nquads()


def read_page(context: Context) -> None:
    """As `read`, for a page. Its transformation cannot be that of its namespace, so the root must name the vocabulary,
    or the profile of the head must."""
    elements = context.all_elements
    words = [value for (value,) in elements.values(elements.having(("profile",)), ("profile",))]
    if len(elements):
        words += elements.attributes(0).values()
    if any(word is not None and DATA_VIEW in word for word in words):
        read(context)


def read(context: Context) -> None:
    """Run the transformations that a document names and that may run."""
    if context.settings.transform.grddl == "off":
        return
    root = _root(context)
    names = list(dict.fromkeys(transformations(root, context.base)))
    names += [name for name in _of_documents(context, root) if name not in names]
    if len(names) > MAX_TRANSFORMATIONS:
        context.find("grddl-too-many", f"only the first {MAX_TRANSFORMATIONS} transformations were run", syntax=SYNTAX)
    for name in names[:MAX_TRANSFORMATIONS]:
        context.links.append(Link(name, context.url, "stylesheet", "", "transformation"))
        stylesheet = _stylesheet(context, name)
        if stylesheet is not None:
            stylesheet.state(context, root, syntax=SYNTAX)


def _root(context: Context) -> etree._Element:
    """The document as XML. HTML that is well-formed keeps the namespaces it declares; any other is put in order."""
    if context.document.kind != "html":
        return context.root
    try:
        return context.root
    except SyntaxInvalid:
        return context.xhtml


def transformations(root: etree._Element, base: str) -> Iterator[str]:
    """Addresses of the stylesheets that a document names itself, in its order."""
    if root.get(_XML_BASE):
        base = join(base, root.get(_XML_BASE) or "")
    for word in (root.get(_TRANSFORMATION) or "").split():
        yield from _address(base, word)
    if root.tag != f"{_XHTML}html":
        return
    head = root.find(f"{_XHTML}head")
    if head is None or DATA_VIEW not in profiles(root):
        return
    declared = head.find(f"{_XHTML}base")
    base = join(base, declared.get("href") or "") if declared is not None else base
    for element in root.iter(f"{_XHTML}link", f"{_XHTML}a"):
        if "transformation" in (element.get("rel") or "").split():
            yield from _address(base, element.get("href") or "")


def profiles(root: etree._Element) -> list[str]:
    """IRIs in the profile of an XHTML head."""
    head = root.find(f"{_XHTML}head")
    return (head.get("profile") or "").split() if head is not None else []


def _address(base: str, reference: str) -> Iterator[str]:
    target = resolve(reference.strip(), base)
    if target:
        yield target


def _of_documents(context: Context, root: etree._Element) -> Iterator[str]:
    """Transformations of the root's namespace and of the page's profiles, from their own documents."""
    if context.settings.transform.grddl != "allow" or context.loader is None:
        return
    space = etree.QName(root).namespace or ""
    sources = [(space, _NAMESPACE_WORD)] if space and f"{{{space}}}" not in (_XHTML, f"{{{RDF}}}") else []
    sources += [(profile, _PROFILE_WORD) for profile in profiles(root) if profile != DATA_VIEW]
    for name, word in sources[:MAX_TRANSFORMATIONS]:
        if _matches(name, context.settings.transform.grddl_allow):
            yield from _named_by(context, name, word, 1)


def _named_by(context: Context, name: str, word: str, depth: int) -> Iterator[str]:
    """Objects of `<name> word ?transformation` in the document at that address."""
    assert context.loader is not None
    address = resolve(name)
    if address is None or depth > MAX_DEPTH:
        return
    try:
        body = context.loader(address)
        statements = _statements(context, body, address, depth)
    except SyntaxInvalid as error:
        context.find("grddl-document", f"{name}: {error.message}", syntax=SYNTAX, severity="info")
        return
    for quad in statements:
        if quad.predicate.value == word and getattr(quad.subject, "value", "") == name:
            target = resolve(getattr(quad.object, "value", ""))
            if target:
                yield target


def _statements(context: Context, body: bytes, url: str, depth: int) -> list[ox.Quad]:
    """RDF of a namespace document: RDF/XML as it is, other XML by its own GRDDL, up to a depth."""
    inner = Context(body, context.document, url=url, settings=context.settings, loader=context.loader)
    root = inner.root
    if root.tag == f"{{{RDF}}}RDF":
        nquads = rdf_files.extract(body, kind="rdfxml", url=url)
    else:
        for name in list(transformations(root, url))[:MAX_TRANSFORMATIONS] if depth < MAX_DEPTH else ():
            stylesheet = _stylesheet(inner, name)
            if stylesheet is not None:
                stylesheet.state(inner, root, syntax=SYNTAX)
        nquads = inner.sink.nquads()
    return list(ox.parse(nquads, ox.RdfFormat.N_QUADS, lenient=True))


def _stylesheet(context: Context, name: str) -> Stylesheet | None:
    """The stylesheet of an address if it may run; None, with a finding, if not."""
    if name in KNOWN:
        return bundled(KNOWN[name]) if KNOWN[name] else None
    setting = context.settings.transform
    by_hash = any(pattern.startswith("sha256:") for pattern in setting.grddl_allow)
    if setting.grddl != "allow" or not (by_hash or _matches(name, setting.grddl_allow)):
        advice = f'to run it: transform.grddl = "allow" and transform.grddl_allow = ["{name}"]'
        context.find("grddl-not-allowed", f"{name} was not run", syntax=SYNTAX, severity="info", advice=advice)
        return None
    if context.loader is None:
        context.find("grddl-not-loaded", f"{name} was not run: there is no loader", syntax=SYNTAX, severity="info")
        return None
    try:
        return compiled(_load(context, name), name=name, imports=Imports(join, lambda url: _load(context, url)))
    except SyntaxInvalid as error:
        context.find(error.code, error.message, syntax=SYNTAX, severity="error", line=error.line)
        return None


def _load(context: Context, url: str) -> bytes:
    """The file of a transformation or of one of its imports, if its address or its hash is allowed."""
    allowed = context.settings.transform.grddl_allow
    by_address = _matches(url, allowed)
    if not by_address and not any(pattern.startswith("sha256:") for pattern in allowed):
        raise SyntaxInvalid(f"{url} is not allowed", code="grddl-not-allowed")
    if context.loader is None:
        raise SyntaxInvalid(f"{url}: there is no loader", code="grddl-not-loaded")
    source = context.loader(url)
    if len(source) > MAX_STYLESHEET_BYTES:
        raise SyntaxInvalid(f"{url}: larger than {MAX_STYLESHEET_BYTES} bytes", code="xslt-too-large")
    digest = f"sha256:{sha256(source).hexdigest()}"
    if not by_address and digest not in allowed:
        raise SyntaxInvalid(f"{url} is not allowed; its digest is {digest}", code="grddl-not-allowed")
    return source


def _matches(url: str, patterns: list[str]) -> bool:
    return any(_glob(pattern).match(url) for pattern in patterns if not pattern.startswith("sha256:"))


@lru_cache(maxsize=256)
def _glob(pattern: str) -> re.Pattern[str]:
    return re.compile(translate(pattern))
