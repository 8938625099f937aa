"""Blank nodes to stable IRIs, so that an unchanged page gives an empty difference and a small change a small one.

A node is named after a hash, not after its place in the page. What enters the hash is decided node by node:

1. First what identifies a thing: its types, its name or number (`_IDENTIFYING`), what refers to it, and, if it has no
   name, the same of the thing that refers to it: "the offer of the product Lamp". Nodes that are unique by then, most
   on real pages, have their name, and keep it when one of their other values changes.
2. For nodes that are still alike, all of their own statements, with every blank neighbour reduced to "some blank node".
3. Nodes that are alike after that take in the colours of their blank neighbours, round by round (colour refinement). A
   round looks only at neighbours of a node that changed, so long lists cost linear time.
4. What remains alike after that is interchangeable, or built to look so. One node of a group is singled out by a
   number, its neighbours are refined again, and so on until all differ. For interchangeable nodes every choice gives
   the same bytes.

Adding an item elsewhere on the page changes no name, unless it is the second of a kind that nothing distinguishes.

Canonicalisation of hostile graphs is exponential in general. Here the work is bounded by `_EFFORT` per statement; a
graph that exceeds it gets its last numbers in the order of its own labels: valid and repeatable, only no longer
independent of the labels. Nodes are never merged: that would be a judgement about meaning (lean graphs), no labelling.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from xxhash import xxh3_128_digest, xxh3_128_hexdigest

from quadloom.documents.syntaxes.terms import RDF, TYPE
from quadloom.errors import SyntaxInvalid
from quadloom.model.quads import Triple

try:
    from quadloom.documents.native.graphs import canonical as _native
except ImportError:  # it was not built: there is no compiler
    _native = None  # type: ignore[assignment]

PREFIX = "urn:quadloom:blank:"

_EFFORT = 64  # hashed neighbours per statement, over all rounds
_MOST_EFFORT = 1_500_000  # of one page: under a second
_OBJECT = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?|<<\(.*\)>>|<[^>]*>|_:[^\s<"]+')
_STRING_OR_BLANK = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|<[^<>]*>|(_:[^\s<>"]+)')

# Local names, in lower case, of properties whose value says which thing is meant. Cells of RDF lists are told apart by
# what they hold: named by their place, all of them would change when a list grows at its beginning.
_NAMES = (
    "type name alternatename title headline label preflabel legalname familyname givenname fn nickname nick identifier"
    " id uid sku mpn gtin gtin8 gtin12 gtin13 gtin14 productid isbn issn doi serialnumber url homepage email mbox"
    " telephone propertyid codevalue termcode notation first"
)
_IDENTIFYING = frozenset(_NAMES.split())
_LOCAL = re.compile(r"[^/#:]*>\Z")
_FIRST = f"<{RDF}first>"
_ANCESTORS = 8  # rounds in which nodes without a name take in that of what refers to them
_MOST_PREDICATES = 10_000
_roles: dict[str, int] = {}  # by predicate


class CanonicalLines(NamedTuple):
    """A graph as N-Quads: sorted, distinct lines; and the object of each line."""

    nquads: bytes
    objects: list[str]


def canonical(triples: Sequence[Triple], graph: str) -> CanonicalLines:
    """The statements in `graph`, without blank nodes. A page that has none costs no more than its lines."""
    try:
        if _native is not None:
            found = _native(tuple(triples), graph, PREFIX, xxh3_128_digest, _roles, _role)
            if found is not None:
                return CanonicalLines(*found)
        return canonical_in_python(triples, graph)
    except UnicodeEncodeError:  # a lone surrogate, which our own terms never hold
        return canonical_in_python([_encodable(triple) for triple in triples], graph)


def canonical_in_python(triples: Iterable[Triple], graph: str) -> CanonicalLines:
    """As `quadloom.documents.native.graphs.canonical`, and with all rules."""
    end = f" <{graph}> ."
    objects: dict[str, str] = {}
    linked: list[Triple] = []
    for triple in triples:
        subject, predicate, obj = triple
        if subject[:2] == "_:" or obj[:2] == "_:" or (obj[:2] == "<<" and "_:" in obj):
            linked.append(triple)
        else:
            objects[f"{subject} {predicate} {obj}{end}"] = obj
    if linked:
        name = _Colouring(linked).names(graph).get
        for subject, predicate, obj in linked:
            if obj[:2] == "<<":
                obj = _STRING_OR_BLANK.sub(lambda found: name(found.group(), found.group()), obj)
            else:
                obj = name(obj, obj)
            objects[f"{name(subject, subject)} {predicate} {obj}{end}"] = obj
    lines = sorted(objects)  # the order of UTF-8 is that of its characters
    return CanonicalLines(("\n".join(lines) + "\n").encode() if lines else b"", [objects[line] for line in lines])


def _encodable(triple: Triple) -> Triple:
    subject, predicate, obj = [term.encode("utf-8", "replace").decode() for term in triple]
    return subject, predicate, obj


def skolemise(nquads: bytes, graph: str) -> bytes:
    """The same for N-Quads as we write it, with single spaces. Raises `SyntaxInvalid` for a line that is none."""
    lines = dict.fromkeys(nquads.decode("utf-8").split("\n"))
    return canonical([_split(line) for line in lines if line], graph).nquads


def _split(line: str) -> Triple:
    """Subject, predicate and object of a line; its graph is dropped."""
    parts = line.split(" ", 2)
    match = _OBJECT.match(parts[2]) if len(parts) == 3 else None
    if match is None:
        raise SyntaxInvalid(f"not an N-Quads line: {line[:100]!r}", code="syntax")
    return parts[0], parts[1], match.group()


def _role(predicate: str) -> int:
    """What a value of the predicate says: 0 = nothing that identifies a thing, 1 = its type, 2 = which thing it is."""
    known = _roles.get(predicate)
    if known is None:
        if len(_roles) > _MOST_PREDICATES:
            _roles.clear()
        local = _LOCAL.search(predicate)
        identifies = local is not None and local.group()[:-1].lower() in _IDENTIFYING
        known = _roles[predicate] = 1 if predicate == TYPE else 2 if identifies else 0
    return known


class _Colouring:
    """Colours (digests) of blank nodes, refined until each node has its own.

    What is hashed of a statement is its mark: `+` property and value, `-` what refers to the node and by which
    property, `=` a property that refers to the node itself, `>` and `<` properties that lead to and from another blank
    node. Marks of values that do not identify a thing are written only for nodes that are alike without them.
    """

    def __init__(self, statements: list[Triple]) -> None:
        self._edges: dict[str, list[tuple[bytes, str]]] = {}  # node: (mark, neighbour)
        self._referring: dict[str, list[tuple[bytes, str]]] = {}  # those of the edges that lead to the node
        self._stated: dict[str, list[Triple]] = {}  # node: statements with it and no other blank node
        self._marks: dict[str, list[str]] = {}  # node: marks that identify it
        self._hubs: dict[str, str] = {}  # statement with a triple term: its mark
        stated, marks = self._stated, self._marks
        known = _roles.get
        named: set[str] = set()
        cells: set[str] = set()
        for triple in statements:
            subject, predicate, obj = triple
            if obj[:2] == "_:":
                if subject[:2] != "_:":
                    node, mark = obj, f"-{subject}{predicate}"
                elif subject == obj:
                    node, mark = subject, f"={predicate}"
                else:
                    self._connect(subject, predicate, obj)
                    if predicate == _FIRST:
                        cells.add(subject)
                    continue
            elif obj[:2] == "<<":
                self._add_triple_term(subject, predicate, obj)
                continue
            else:
                role = known(predicate)
                if role is None:
                    role = _role(predicate)
                node, mark = subject, f"+{predicate}{obj}" if role else ""
                if role == 2:
                    named.add(node)
            if node in stated:
                stated[node].append(triple)
            else:
                stated[node] = [triple]
            if mark:
                if node in marks:
                    marks[node].append(mark)
                else:
                    marks[node] = [mark]
        nodes = dict.fromkeys((*stated, *self._hubs, *self._edges))
        self._colour = self._identities(nodes, named, cells)
        self._classes: dict[bytes, set[str]] = {}  # empty if all differ already
        if len(set(self._colour.values())) < len(self._colour):
            for node, colour in self._colour.items():
                self._classes.setdefault(colour, set()).add(node)
        self._effort = min(_EFFORT * (len(statements) + 16), _MOST_EFFORT)

    def _said(self, node: str) -> set[str]:
        """All marks of a node. Distinct, so that one more neighbour of a kind that was there before does not rename
        it."""
        hub = self._hubs.get(node)
        said = {hub} if hub is not None else set()
        said.update([kind.decode() for kind, _ in self._edges.get(node, ())])
        for subject, predicate, obj in self._stated.get(node, ()):
            if subject != node:
                said.add(f"-{subject}{predicate}")
            else:
                said.add(f"={predicate}" if obj == node else f"+{predicate}{obj}")
        return said

    def _identities(self, nodes: Iterable[str], named: set[str], cells: set[str]) -> dict[str, bytes]:
        """The first colours: of nodes that are unique by what identifies them, by that; of others, by all they say."""
        told: dict[str, bytes] = {}
        marks = self._marks
        for node in nodes:
            if node[:2] == "_:":
                found = marks.get(node, ()) if node not in cells else self._said(node)
                text = "\n".join(sorted(set(found)) if len(found) > 1 else found)
                told[node] = xxh3_128_digest(f"who\n{text}".encode())
        around = {node: referring for node, referring in self._referring.items() if node not in named}
        if around:
            self._add_ancestors(told, around)
        count = Counter(told.values())
        return {
            node: told[node]
            if node in told and count[told[node]] == 1
            else xxh3_128_digest("\n".join(sorted(self._said(node))).encode())
            for node in nodes
        }

    def _add_ancestors(self, told: dict[str, bytes], around: dict[str, list[tuple[bytes, str]]]) -> None:
        """Nodes without a name take in what identifies those that refer to them, round by round. A round looks at the
        nodes around which something changed in the one before."""
        first = {node: told[node] for node in around}
        pending = around
        for _ in range(_ANCESTORS):
            after = {}
            for node, referring in pending.items():
                if len(referring) == 1:
                    ((kind, one),) = referring
                    seen = kind + told.get(one, b"")
                else:
                    seen = b"".join(sorted({kind + told.get(one, b"") for kind, one in referring}))
                after[node] = xxh3_128_digest(first[node] + seen)
            changed = {node for node, colour in after.items() if told[node] != colour}
            if not changed:
                break
            told |= after
            pending = {
                node: referring
                for node, referring in around.items()
                if not changed.isdisjoint([one for _, one in referring])
            }

    def _connect(self, subject: str, predicate: str, obj: str) -> None:
        mark = f"<{predicate}"
        back = mark.encode(), subject
        self._edges.setdefault(subject, []).append((f">{predicate}".encode(), obj))
        self._edges.setdefault(obj, []).append(back)
        self._referring.setdefault(obj, []).append(back)
        self._marks.setdefault(obj, []).append(mark)

    def _add_triple_term(self, subject: str, predicate: str, obj: str) -> None:
        """A statement with blank nodes inside its object becomes a node itself, tied to each of them by position."""
        blanks = [found.group(1) for found in _STRING_OR_BLANK.finditer(obj) if found.group(1)]
        if subject[:2] == "_:":
            blanks.append(subject)
        hub = f"= {subject} {predicate} {obj}"
        shape = _STRING_OR_BLANK.sub(lambda found: "_:" if found.group(1) else found.group(), obj)
        self._hubs[hub] = f"{'_:' if subject[:2] == '_:' else subject} {predicate} {shape}"
        for position, blank in enumerate(blanks):
            self._connect(hub, str(position), blank)

    def names(self, graph: str) -> dict[str, str]:
        if self._classes:
            self._distinguish()
        seed = graph.encode()
        return {
            node: f"<{PREFIX}{xxh3_128_hexdigest(colour + seed)}>"
            for node, colour in self._colour.items()
            if node[:2] == "_:"
        }

    def _distinguish(self) -> None:
        alike = [node for members in self._classes.values() if len(members) > 1 for node in members]
        self._refine(alike)
        heap = [(len(members), colour) for colour, members in self._classes.items() if len(members) > 1]
        heapify(heap)
        while heap:
            _, colour = heappop(heap)
            if self._effort <= 0 or self._are_interchangeable(colour):
                self._number(colour)
                continue
            total = len(self._classes.get(colour, ()))
            for node in sorted(self._classes.get(colour, ())):
                if self._colour[node] != colour or len(self._classes[colour]) < 2 or self._effort <= 0:
                    continue  # distinguished in the meantime, the last of its class, or out of effort
                self._move(node, xxh3_128_digest(b"%b %d" % (colour, total)))
                total -= 1
                for born in self._refine([other for _, other in self._edges[node]]):
                    heappush(heap, (len(self._classes.get(born, ())), born))
            if len(self._classes.get(colour, ())) > 1:
                heappush(heap, (len(self._classes[colour]), colour))

    def _are_interchangeable(self, colour: bytes) -> bool:
        """Whether members have no neighbours but nodes already distinguished: then they are interchangeable.

        One member represents all, because after refinement all have the same view.
        """
        for node in self._classes.get(colour, ()):
            return all(len(self._classes[self._colour[other]]) == 1 for _, other in self._edges.get(node, ()))
        return True

    def _number(self, colour: bytes) -> None:
        """Number the members of a class: any order will do for interchangeable ones, and must do for the rest."""
        members = sorted(self._classes.get(colour, ()))
        if len(members) > 1:
            for number, node in enumerate(members, start=1):
                self._move(node, xxh3_128_digest(b"%b %d" % (colour, number)))

    def _move(self, node: str, colour: bytes) -> None:
        old = self._classes[self._colour[node]]
        old.discard(node)
        if not old:
            del self._classes[self._colour[node]]
        self._colour[node] = colour
        self._classes.setdefault(colour, set()).add(node)

    def _refine(self, nodes: list[str]) -> set[bytes]:
        """Split classes by their members' neighbours until nothing changes; the colours that came into being.

        All new colours of a round rest on the colours before it, so the order of `nodes` does not matter. Of a class
        that splits, the largest part keeps the colour (if all members were examined): most neighbours then need
        no second look, which is what makes long lists linear.
        """
        colour, classes, edges = self._colour, self._classes, self._edges
        born: set[bytes] = set()
        while nodes and self._effort > 0:
            seen: dict[bytes, dict[bytes, list[str]]] = {}  # class: what its members see: those members
            for node in set(nodes):
                mine = colour[node]
                around = edges.get(node)
                if around is None or len(classes[mine]) == 1:
                    continue
                self._effort -= len(around)
                view = xxh3_128_digest(mine + b"".join(sorted([kind + colour[other] for kind, other in around])))
                seen.setdefault(mine, {}).setdefault(view, []).append(node)
            nodes = []
            for mine, views in seen.items():
                if sum(map(len, views.values())) == len(classes[mine]):
                    del views[max(views, key=lambda view: (len(views[view]), view))]
                for view, members in views.items():
                    for node in members:
                        self._move(node, view)
                        nodes.extend(other for _, other in edges[node])
                    born.add(view)
        return born
