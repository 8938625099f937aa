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
from collections import Counter, defaultdict
from collections.abc import Mapping
from heapq import heapify, heappop, heappush

from xxhash import xxh3_128_digest, xxh3_128_hexdigest

from quadloom.errors import SyntaxInvalid

PREFIX = "urn:quadloom:blank:"

_EFFORT = 64  # hashed neighbours per statement, over all rounds
_MOST_EFFORT = 1_500_000  # of one page: under a second
_OBJECT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"(?:@[A-Za-z0-9-]+|\^\^<[^>]*>)?|<<\(.*\)>>|<[^>]*>|_:[^\s<"]+')
_STRING_OR_BLANK = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|<[^<>]*>|(_:[^\s<>"]+)')

# Local names, in lower case, of properties whose value says which thing is meant. Cells of RDF lists are told apart by
# what they hold: named by their place, all of them would change when a list grows at its beginning.
_IDENTIFYING = frozenset(
    b"type name alternatename title headline label preflabel legalname familyname givenname fn nickname nick identifier"
    b" id uid sku mpn gtin gtin8 gtin12 gtin13 gtin14 productid isbn issn doi serialnumber url homepage email mbox"
    b" telephone propertyid codevalue termcode notation first".split(b" ")
)
_LOCAL = re.compile(rb"[^/#:]*>\Z")
_LIST_CELL = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>"
_ANCESTORS = 8  # rounds in which nodes without a name take in that of what refers to them
_MOST_PREDICATES = 10_000
_identifying: dict[bytes, bool] = {}  # by predicate

_Statement = tuple[bytes, bytes, bytes]


def skolemise(nquads: bytes, graph: str) -> bytes:
    """Sorted, distinct lines, all in `graph`, without blank nodes. Expects N-Quads as we write it: single spaces."""
    end = b" <" + graph.encode() + b"> ."
    out: set[bytes] = set()
    linked: list[_Statement] = []
    for line in set(nquads.split(b"\n")):
        # Only the beginnings of subject and object are looked at: counting spaces or looking for `_:` in a whole line
        # reads every literal, of which an article has 12 KB.
        before = line.find(b" ", line.find(b" ") + 1)
        obj = line[before + 1 : before + 3]
        if line[:2] == b"_:" or obj == b"_:" or (obj == b"<<" and b"_:" in line):
            linked.append(_split(line, end))
        elif before < len(line) - len(end) and line.endswith(end):  # else a triple about the page itself
            out.add(line)
        elif line:
            out.add(b" ".join(_split(line, end)) + end)
    if linked:
        name = _Colouring(linked).names(graph).get
        for subject, predicate, obj in linked:
            if obj[:2] == b"<<":
                obj = _STRING_OR_BLANK.sub(lambda found: name(found.group(), found.group()), obj)
            out.add(b" ".join((name(subject, subject), predicate, name(obj, obj))) + end)
    if not out:
        return b""
    return b"\n".join(sorted(out)) + b"\n"


def _split(line: bytes, end: bytes) -> _Statement:
    """Subject, predicate and object of a line; its graph is dropped."""
    parts = line.split(b" ", 2)
    if len(parts) == 3 and parts[2].endswith(end):
        return parts[0], parts[1], parts[2][: -len(end)]
    match = _OBJECT.match(parts[2]) if len(parts) == 3 else None
    if match is None:
        raise SyntaxInvalid(f"not an N-Quads line: {line[:100]!r}", code="syntax")
    return parts[0], parts[1], match.group()


def _identifies(mark: bytes) -> bool:
    """Whether the predicate of `+<predicate>object` tells which thing is meant."""
    predicate = mark[1 : mark.index(b">") + 1]
    known = _identifying.get(predicate)
    if known is None:
        if len(_identifying) > _MOST_PREDICATES:
            _identifying.clear()
        local = _LOCAL.search(predicate)
        known = _identifying[predicate] = local is not None and local.group()[:-1].lower() in _IDENTIFYING
    return known


_TYPE_MARK = b"+<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
_CELL_MARK = b">" + _LIST_CELL


class _Colouring:
    """Colours (digests) of blank nodes, refined until each node has its own."""

    def __init__(self, statements: list[_Statement]) -> None:
        self._edges: dict[bytes, list[tuple[bytes, bytes]]] = {}  # node: (direction and predicate, neighbour)
        own: defaultdict[bytes, list[bytes]] = defaultdict(list)
        for subject, predicate, obj in statements:
            if obj[:2] == b"<<":
                self._add_triple_term(subject, predicate, obj, own)
            elif subject[:2] != b"_:":
                own[obj].append(b"-" + subject + predicate)
            elif obj[:2] != b"_:":
                own[subject].append(b"+" + predicate + obj)
            elif subject == obj:
                own[subject].append(b"=" + predicate)
            else:
                self._connect(subject, predicate, obj, own)
        # Distinct, so that one more neighbour of a kind that was there before does not rename the node.
        unique = self._identities(own)
        self._colour = {
            node: unique.get(node) or xxh3_128_digest(b"\n".join(sorted(set(said)))) for node, said in own.items()
        }
        self._classes: dict[bytes, set[bytes]] = {}
        for node, colour in self._colour.items():
            self._classes.setdefault(colour, set()).add(node)
        self._effort = min(_EFFORT * (len(statements) + 16), _MOST_EFFORT)

    def _identities(self, own: Mapping[bytes, list[bytes]]) -> dict[bytes, bytes]:
        """Colours of nodes that are unique by what identifies them."""
        told: dict[bytes, bytes] = {}
        nameless: dict[bytes, list[tuple[bytes, bytes]]] = {}  # node: (predicate, what refers to it)
        for node, said in own.items():
            if node[:2] != b"_:":
                continue
            marks: set[bytes] = set()
            is_nameless = True
            for mark in said:
                sign = mark[:1]
                if sign == b"+":
                    if mark.startswith(_TYPE_MARK):
                        marks.add(mark)
                    elif _identifies(mark):
                        marks.add(mark)
                        is_nameless = False
                elif sign != b">":
                    marks.add(mark)
                elif mark.startswith(_CELL_MARK):
                    marks.update(said)
            told[node] = xxh3_128_digest(b"who\n" + b"\n".join(sorted(marks)))
            if is_nameless:
                around = [(kind, other) for kind, other in self._edges.get(node, ()) if kind[:1] == b"<"]
                if around:
                    nameless[node] = around
        first = dict(told)
        for _ in range(_ANCESTORS):
            after = {
                node: xxh3_128_digest(
                    first[node] + b"".join(sorted({kind + told.get(one, b"") for kind, one in around}))
                )
                for node, around in nameless.items()
            }
            if all(told[node] == colour for node, colour in after.items()):
                break
            told |= after
        count = Counter(told.values())
        return {node: colour for node, colour in told.items() if count[colour] == 1}

    def _connect(self, subject: bytes, predicate: bytes, obj: bytes, own: defaultdict[bytes, list[bytes]]) -> None:
        forth, back = b">" + predicate, b"<" + predicate
        self._edges.setdefault(subject, []).append((forth, obj))
        self._edges.setdefault(obj, []).append((back, subject))
        own[subject].append(forth)
        own[obj].append(back)

    def _add_triple_term(
        self, subject: bytes, predicate: bytes, obj: bytes, own: defaultdict[bytes, list[bytes]]
    ) -> None:
        """A statement with blank nodes inside its object becomes a node itself, tied to each of them by position."""
        blanks = [found.group(1) for found in _STRING_OR_BLANK.finditer(obj) if found.group(1)]
        if subject[:2] == b"_:":
            blanks.append(subject)
        hub = b" ".join((b"=", subject, predicate, obj))
        shape = _STRING_OR_BLANK.sub(lambda found: b"_:" if found.group(1) else found.group(), obj)
        own[hub].append(b" ".join((b"_:" if subject[:2] == b"_:" else subject, predicate, shape)))
        for position, blank in enumerate(blanks):
            self._connect(hub, b"%d" % position, blank, own)

    def names(self, graph: str) -> dict[bytes, bytes]:
        if len(self._classes) < len(self._colour):
            self._distinguish()
        seed = graph.encode()
        return {
            node: b"<%b%b>" % (PREFIX.encode(), xxh3_128_hexdigest(colour + seed).encode())
            for node, colour in self._colour.items()
            if node[:2] == b"_:"
        }

    def _distinguish(self) -> None:
        alike = [node for members in self._classes.values() if len(members) > 1 for node in members]
        self._refine(alike)
        heap = [(len(members), colour) for colour, members in self._classes.items() if len(members) > 1]
        heapify(heap)
        while heap:
            _, colour = heappop(heap)
            if self._effort <= 0 or self._are_twins(colour):
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

    def _are_twins(self, colour: bytes) -> bool:
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

    def _move(self, node: bytes, colour: bytes) -> None:
        old = self._classes[self._colour[node]]
        old.discard(node)
        if not old:
            del self._classes[self._colour[node]]
        self._colour[node] = colour
        self._classes.setdefault(colour, set()).add(node)

    def _refine(self, nodes: list[bytes]) -> set[bytes]:
        """Split classes by their members' neighbours until nothing changes; the colours that came into being.

        All new colours of a round rest on the colours before it, so the order of `nodes` does not matter. Of a class
        that splits, the largest part keeps the colour (if all members were examined): most neighbours then need
        no second look, which is what makes long lists linear.
        """
        colour, classes, edges = self._colour, self._classes, self._edges
        born: set[bytes] = set()
        while nodes and self._effort > 0:
            seen: dict[bytes, dict[bytes, list[bytes]]] = {}  # class: what its members see: those members
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
