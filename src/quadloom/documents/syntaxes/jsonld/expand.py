"""JSON-LD 1.1 expansion (JSON-LD API, section 5.1): keys become IRIs or keywords, values arrays of objects."""

from __future__ import annotations

from collections.abc import Iterable

from quadloom.documents.syntaxes import iri as jsonld_iri
from quadloom.documents.syntaxes.jsonld.context import ContextProcessor
from quadloom.documents.syntaxes.jsonld.json import Json
from quadloom.documents.syntaxes.jsonld.terms import KEYWORDS, ActiveContext, TermDefinition, Unset, invalid

_NO_TERM = TermDefinition()
Map = dict[str, Json]


def expand_document(processor: ContextProcessor, context: ActiveContext, document: Json, url: str) -> list[Json]:
    """The expanded form of a whole document; `context` already holds the caller's expandContext."""
    expanded = Expansion(processor).expand(context, None, document, url)
    if isinstance(expanded, dict) and expanded.keys() == {"@graph"}:
        expanded = expanded["@graph"]
    if expanded is None:
        return []
    return expanded if isinstance(expanded, list) else [expanded]


class Expansion:
    """The Expansion Algorithm. Its methods recurse as deep as the JSON does, which `json.check_depth` limits."""

    def __init__(self, processor: ContextProcessor) -> None:
        self._processor = processor
        self.old = processor.old

    def expand(
        self, active: ActiveContext, name: str | None, element: Json, base_url: str, from_map: bool = False
    ) -> Json:
        if element is None:
            return None
        term = active.terms.get(name, _NO_TERM) if name is not None else _NO_TERM
        if isinstance(element, list):
            return self._expand_array(active, name, term, element, base_url, from_map)
        if isinstance(element, dict):
            return self._expand_map(active, name, term, element, base_url, from_map)
        if name is None or name == "@graph":
            return None
        if not isinstance(term.context, Unset):
            active = self._processor.process(active, term.context, term.base_url)
            term = active.terms.get(name, _NO_TERM)
        return value_of(active, term, element)

    def _expand_array(
        self,
        active: ActiveContext,
        name: str | None,
        term: TermDefinition,
        element: list[Json],
        base_url: str,
        from_map: bool,
    ) -> list[Json]:
        result: list[Json] = []
        for item in element:
            expanded = self.expand(active, name, item, base_url, from_map)
            if isinstance(expanded, list):
                if "@list" in term.container:
                    result.append({"@list": expanded})
                else:
                    result.extend(expanded)
            elif expanded is not None:
                result.append(expanded)
        return result

    def _expand_map(
        self, active: ActiveContext, name: str | None, term: TermDefinition, element: Map, base_url: str, from_map: bool
    ) -> Json:
        if active.previous is not None and not from_map and not _keeps_type_scope(active, element):
            active = active.previous
        if not isinstance(term.context, Unset):
            active = self._processor.process(active, term.context, term.base_url, override_protected=True)
        if "@context" in element:
            active = self._processor.process(active, element["@context"], base_url)
        type_scoped = active
        type_keys = [key for key in element if active.expand(key, vocab=True) == "@type"]
        type_keys.sort()
        for key in type_keys:
            active = self._apply_type_scopes(active, type_scoped, element[key])
        result: Map = {}
        self._expand_entries(
            active, type_scoped, name, element, base_url, result, _input_type(active, element, type_keys)
        )
        return finish(result, name)

    def _apply_type_scopes(self, active: ActiveContext, type_scoped: ActiveContext, value: Json) -> ActiveContext:
        names = value if isinstance(value, list) else [value]
        for type_name in sorted(item for item in names if isinstance(item, str)):
            term = type_scoped.terms.get(type_name, _NO_TERM)
            if not isinstance(term.context, Unset):
                active = self._processor.process(active, term.context, term.base_url, propagate=False)
        return active

    def _expand_entries(
        self,
        active: ActiveContext,
        type_scoped: ActiveContext,
        name: str | None,
        element: Map,
        base_url: str,
        result: Map,
        input_type: str | None,
    ) -> None:
        """Steps 13 and 14: each entry of `element` into `result`, then those of its nested maps."""
        nests: list[str] = []
        for key, value in element.items():
            if key == "@context":
                continue
            expanded_name = active.expand(key, vocab=True)
            if expanded_name is None:
                continue
            if expanded_name in KEYWORDS:
                if name == "@reverse":
                    raise invalid("invalid reverse property map", key)
                if expanded_name == "@nest":
                    nests.append(key)
                elif expanded_name == "@reverse":
                    self._expand_reverse(active, value, base_url, result)
                else:
                    expand_keyword(self, active, type_scoped, name, expanded_name, value, base_url, result, input_type)
            elif ":" in expanded_name:
                self._expand_property(active, key, expanded_name, value, base_url, result)
        for key in nests:
            self._expand_nest(active, type_scoped, name, key, element[key], base_url, result, input_type)

    def _expand_nest(
        self,
        active: ActiveContext,
        type_scoped: ActiveContext,
        name: str | None,
        key: str,
        value: Json,
        base_url: str,
        result: Map,
        input_type: str | None,
    ) -> None:
        term = active.terms.get(key, _NO_TERM)
        if not isinstance(term.context, Unset):
            active = self._processor.process(active, term.context, term.base_url, override_protected=True)
        for nested in value if isinstance(value, list) else [value]:
            if not isinstance(nested, dict) or any(active.expand(k, vocab=True) == "@value" for k in nested):
                raise invalid("invalid @nest value", key)
            self._expand_entries(active, type_scoped, name, nested, base_url, result, input_type)

    def _expand_reverse(self, active: ActiveContext, value: Json, base_url: str, result: Map) -> None:
        if not isinstance(value, dict):
            raise invalid("invalid @reverse value", value)
        if "@reverse" in result and self.old:
            raise invalid("colliding keywords", "@reverse")
        expanded = self.expand(active, "@reverse", value, base_url)
        if not isinstance(expanded, dict):
            return
        twice = expanded.pop("@reverse", None)
        if isinstance(twice, dict):
            for key, items in twice.items():
                add(result, key, items)
        if expanded:
            _add_reverse(result, expanded)

    def _expand_property(
        self, active: ActiveContext, key: str, iri: str, value: Json, base_url: str, result: Map
    ) -> None:
        term = active.terms.get(key, _NO_TERM)
        container = term.container
        expanded: Json
        if term.type == "@json":
            expanded = {"@value": value, "@type": "@json"}
        elif isinstance(value, dict) and "@language" in container:
            expanded = _expand_language_map(active, term, value)
        elif isinstance(value, dict) and container & {"@index", "@type", "@id"}:
            expanded = self._expand_index_map(active, key, term, value, base_url)
        else:
            expanded = self.expand(active, key, value, base_url)
        if expanded is None:
            return
        if "@list" in container and not is_list(expanded):
            expanded = {"@list": expanded if isinstance(expanded, list) else [expanded]}
        if "@graph" in container and not container & {"@id", "@index"}:
            items = expanded if isinstance(expanded, list) else [expanded]
            expanded = [{"@graph": [item]} for item in items]
        if term.reverse:
            _add_reverse(result, {iri: expanded if isinstance(expanded, list) else [expanded]})
        else:
            add(result, iri, expanded)

    def _expand_index_map(
        self, active: ActiveContext, key: str, term: TermDefinition, value: Map, base_url: str
    ) -> list[Json]:
        container = term.container
        result: list[Json] = []
        for index, index_value in value.items():
            scope = active
            if "@type" in container:
                outer = active.previous or active
                index_term = outer.terms.get(index, _NO_TERM)
                if not isinstance(index_term.context, Unset):
                    scope = self._processor.process(outer, index_term.context, index_term.base_url)
            expanded_index = active.expand(index, vocab=True)
            values: list[Json] = index_value if isinstance(index_value, list) else [index_value]
            items = self.expand(scope, key, values, base_url, from_map=True)
            for item in items if isinstance(items, list) else []:
                if "@graph" in container and not is_graph(item):
                    item = {"@graph": [item]}
                if expanded_index != "@none" and isinstance(item, dict):
                    _index_item(active, term, item, index, expanded_index)
                result.append(item)
        return result


def _index_item(active: ActiveContext, term: TermDefinition, item: Map, index: str, expanded_index: str | None) -> None:
    """Give `item` of an index, id or type map what its key says (step 13.8.3.7)."""
    container = term.container
    if "@index" in container:
        if term.index is not None and term.index != "@index":
            re_expanded = value_of(active, active.terms.get(term.index, _NO_TERM), index)
            index_iri = active.expand(term.index, vocab=True) or term.index
            existing = item.get(index_iri, [])
            item[index_iri] = [re_expanded, *(existing if isinstance(existing, list) else [existing])]
            if is_value(item):
                raise invalid("invalid value object", index)
        else:
            item.setdefault("@index", index)
    elif "@id" in container:
        item.setdefault("@id", active.expand(index, relative=True))
    elif "@type" in container:
        types = item.get("@type", [])
        item["@type"] = [expanded_index, *(types if isinstance(types, list) else [types])]


def _expand_language_map(active: ActiveContext, term: TermDefinition, value: Map) -> list[Json]:
    direction = active.direction if isinstance(term.direction, Unset) else term.direction
    result: list[Json] = []
    for language, texts in value.items():
        for text in texts if isinstance(texts, list) else [texts]:
            if text is None:
                continue
            if not isinstance(text, str):
                raise invalid("invalid language map value", text)
            item: Map = {"@value": text}
            if active.expand(language, vocab=True) != "@none":
                item["@language"] = language.lower()
            if direction is not None:
                item["@direction"] = direction
            result.append(item)
    return result


def add(result: Map, key: str, values: Json) -> None:
    """Append to `result[key]`, which is always an array."""
    existing = result.get(key)
    items = values if isinstance(values, list) else [values]
    if isinstance(existing, list):
        existing.extend(items)
    else:
        result[key] = list(items)


def _add_reverse(result: Map, entries: Map) -> None:
    target = result.setdefault("@reverse", {})
    if not isinstance(target, dict):
        return
    for key, items in entries.items():
        for item in items if isinstance(items, list) else [items]:
            if is_value(item) or is_list(item):
                raise invalid("invalid reverse property value", key)
            add(target, key, item)


def _keeps_type_scope(active: ActiveContext, element: Map) -> bool:
    """Value objects and bare references do not end a type-scoped context (step 7)."""
    names = [active.expand(key, vocab=True) for key in element]
    return "@value" in names or names == ["@id"]


def _input_type(active: ActiveContext, element: Map, type_keys: Iterable[str]) -> str | None:
    for key in type_keys:
        value = element[key]
        last = value[-1] if isinstance(value, list) and value else value
        return active.expand(last, vocab=True) if isinstance(last, str) else None
    return None


_VALUE_ENTRIES = frozenset(["@direction", "@index", "@language", "@type", "@value"])


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
    expander: Expansion,
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
    """Whether a value object has a value; raises if it is no valid value object."""
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
