"""Well-known JSON-LD contexts as compact tables, so that the crawl never loads them.

In: the address of a context, in any of the spellings found on the web. Out: the same terms as the published context,
ready to use. `tools/build_contexts.py` makes the tables; README.md names their sources and licences.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import resources

import msgspec

from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.terms import ActiveContext, TermDefinition

_SPELLING = re.compile(r"https?://(?:www\.)?", re.IGNORECASE)
_NO_CONTAINER = TermDefinition().container
_NAMES = {
    "schema.org": "schemaorg",
    "schema.org/docs/jsonldcontext.json": "schemaorg",
    "schema.org/docs/jsonldcontext.jsonld": "schemaorg",
    "schema.org/version/latest/schemaorg.jsonld": "schemaorg",
}


class TermGroup(msgspec.Struct, frozen=True, omit_defaults=True):
    """Terms that differ in nothing but their name: each stands for `namespace` + name."""

    namespace: str
    names: str  # separated by spaces
    type: str | None = None
    container: tuple[str, ...] = ()
    prefix: bool = False


class TermTable(msgspec.Struct, frozen=True, omit_defaults=True):
    """A context without scoped contexts. `other` maps the terms whose IRI does not end with their name."""

    source: str
    url: str
    vocab: str | None
    groups: tuple[TermGroup, ...]
    other: dict[str, str] = {}
    prefixes: dict[str, str] = {}


class BundledContext(msgspec.Struct, frozen=True):
    url: str
    active: ActiveContext
    table: TermTable

    def local(self) -> Json:
        """The table as a local context, for the rare document that has defined something before it."""
        return local_context(self.table)


def find(url: str) -> BundledContext | None:
    """The bundled context for `url`, or None. Spellings differ in scheme, `www.`, case of the host, final slash."""
    match = _SPELLING.match(url)
    if match is None or len(url) > 100:
        return None
    host, _, path = url[match.end() :].partition("/")
    path = path.partition("#")[0].rstrip("/")
    name = _NAMES.get(f"{host.lower()}/{path}" if path else host.lower().partition("#")[0])
    return _load(name) if name is not None else None


@cache
def _load(name: str) -> BundledContext:
    data = resources.files(__package__).joinpath(f"{name}.json").read_bytes()
    table = msgspec.json.decode(data, type=TermTable)
    return BundledContext(url=table.url, active=active_context(table), table=table)


def active_context(table: TermTable) -> ActiveContext:
    context = ActiveContext.initial(None)
    context.vocab = table.vocab
    for group in table.groups:
        container = frozenset(group.container) if group.container else _NO_CONTAINER
        for name in group.names.split():
            term = TermDefinition(group.namespace + name)
            term.type, term.prefix = group.type, group.prefix
            term.container = container
            context.terms[name] = term
    for name, iri in {**table.other, **table.prefixes}.items():
        context.terms[name] = TermDefinition(iri)
        context.terms[name].prefix = name in table.prefixes
    return context


def local_context(table: TermTable) -> dict[str, Json]:
    local: dict[str, Json] = {"@vocab": table.vocab}
    for group in table.groups:
        for name in group.names.split():
            entry: dict[str, Json] = {"@id": group.namespace + name}
            if group.type is not None:
                entry["@type"] = group.type
            if group.container:
                entry["@container"] = list(group.container)
            local[name] = entry
    local.update({name: {"@id": iri} for name, iri in table.other.items()})
    local.update(table.prefixes)
    return local
