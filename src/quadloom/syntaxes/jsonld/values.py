"""Values in expansion: Value Expansion, the keywords of an object, the checks at its end (steps 13.4 and 15-19)."""

from __future__ import annotations

from typing import Protocol

from quadloom.syntaxes import iri as jsonld_iri
from quadloom.syntaxes.jsonld.json import Json
from quadloom.syntaxes.jsonld.terms import ActiveContext, TermDefinition, Unset, invalid

Map = dict[str, Json]
_VALUE_ENTRIES = frozenset(["@direction", "@index", "@language", "@type", "@value"])


class Expander(Protocol):
    """What keyword entries need of the algorithm around them."""

    old: bool

    def expand(
        self, active: ActiveContext, name: str | None, element: Json, base_url: str, from_map: bool = False
    ) -> Json: ...


def value_of(active: ActiveContext, term: TermDefinition, value: Json) -> Map:
    """Value Expansion (section 5.3): a scalar by its term's type, language and direction."""
    if isinstance(value, str):
        if term.type == "@id":
            return {"@id": active.expand(value, relative=True)}
        if term.type == "@vocab":
            return {"@id": active.expand(value, relative=True, vocab=True)}
    result: Map = {"@value": value}
    if term.type is not None and term.type not in ("@id", "@vocab", "@none"):
        result["@type"] = term.type
    elif isinstance(value, str):
        language = active.language if isinstance(term.language, Unset) else term.language
        direction = active.direction if isinstance(term.direction, Unset) else term.direction
        if language is not None:
            result["@language"] = language
        if direction is not None:
            result["@direction"] = direction
    return result


def expand_keyword(
    expander: Expander,
    active: ActiveContext,
    type_scoped: ActiveContext,
    name: str | None,
    keyword: str,
    value: Json,
    base_url: str,
    result: Map,
    input_type: str | None,
) -> None:
    """One keyword entry of a map into `result` (step 13.4; @nest and @reverse are done by the caller)."""
    if keyword in result and (keyword not in ("@included", "@type") or expander.old):
        raise invalid("colliding keywords", keyword)
    if keyword == "@id":
        if not isinstance(value, str):
            raise invalid("invalid @id value", value)
        result["@id"] = active.expand(value, relative=True)
    elif keyword == "@type":
        result["@type"] = [*_listed(result.get("@type", [])), *_types(type_scoped, value)]
    elif keyword == "@graph":
        result["@graph"] = _listed(expander.expand(active, "@graph", value, base_url))
    elif keyword == "@included":
        if not expander.old:
            # Not None for the active property: strings and value objects would vanish before they could be refused.
            included = _listed(expander.expand(active, "@included", value, base_url))
            if not all(_is_node(item) for item in included):
                raise invalid("invalid @included value", value)
            result["@included"] = [*_listed(result.get("@included", [])), *included]
    elif keyword == "@value":
        if input_type == "@json" and expander.old:
            raise invalid("invalid value object value", "@json needs JSON-LD 1.1")
        if input_type != "@json" and isinstance(value, (dict, list)):
            raise invalid("invalid value object value", value)
        result["@value"] = value
    elif keyword == "@list":
        if name is not None and name != "@graph":
            result["@list"] = _listed(expander.expand(active, name, value, base_url))
    elif keyword == "@set":
        result["@set"] = expander.expand(active, name, value, base_url)
    else:
        _expand_string(keyword, value, result, expander.old)


def _expand_string(keyword: str, value: Json, result: Map, old: bool) -> None:
    if keyword == "@language":
        if not isinstance(value, str):
            raise invalid("invalid language-tagged string", value)
        result["@language"] = value.lower()
    elif keyword == "@direction":
        if not old:
            if value not in ("ltr", "rtl"):
                raise invalid("invalid base direction", value)
            result["@direction"] = value
    elif keyword == "@index":
        if not isinstance(value, str):
            raise invalid("invalid @index value", value)
        result["@index"] = value


def _types(type_scoped: ActiveContext, value: Json) -> list[Json]:
    types: list[Json] = []
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, str):
            raise invalid("invalid type value", item)
        types.append(type_scoped.expand(item, relative=True, vocab=True))
    return types


def finish(result: Map, name: str | None) -> Json:
    """Check an expanded map and reduce it to what counts (steps 15 to 19)."""
    if "@value" in result:
        if not _checked_value(result):
            return None
    elif "@list" in result or "@set" in result:
        if result.keys() - {"@set", "@list", "@index"} or len(result.keys() - {"@index"}) > 1:
            raise invalid("invalid set or list object", sorted(result))
        if "@set" in result:
            return result["@set"]
    elif result.keys() == {"@language"}:
        return None
    says_nothing = not result or "@value" in result or "@list" in result or result.keys() == {"@id"}
    if says_nothing and (name is None or name == "@graph"):
        return None
    return result


def _checked_value(result: Map) -> bool:
    """Whether a value object has a value; raises where it is no valid value object."""
    if result.keys() - _VALUE_ENTRIES or ("@type" in result and ("@language" in result or "@direction" in result)):
        raise invalid("invalid value object", sorted(result))
    types = result.get("@type")
    if types is not None:
        listed = _listed(types)
        result["@type"] = listed[0] if len(listed) == 1 else listed
    if result.get("@type") == "@json":
        return True
    value = result["@value"]
    if value is None:
        return False
    if "@language" in result and not isinstance(value, str):
        raise invalid("invalid language-tagged value", value)
    datatype = result.get("@type")
    if "@type" in result and not (
        isinstance(datatype, str) and not datatype.startswith("_:") and jsonld_iri.has_iri_form(datatype)
    ):
        raise invalid("invalid typed value", datatype)
    return True


def _listed(value: Json) -> list[Json]:
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def _is_node(item: Json) -> bool:
    return isinstance(item, dict) and not item.keys() & {"@value", "@list", "@set"}


def is_value(item: Json) -> bool:
    return isinstance(item, dict) and "@value" in item


def is_list(item: Json) -> bool:
    return isinstance(item, dict) and "@list" in item


def is_graph(item: Json) -> bool:
    return isinstance(item, dict) and "@graph" in item and item.keys() <= {"@graph", "@id", "@index"}
