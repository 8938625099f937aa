"""Three questions that the demo answers after its crawl, and that a newcomer can vary."""

from __future__ import annotations

from typing import Literal

import msgspec


class Question(msgspec.Struct, frozen=True):
    """`command` is what to type after `quadloom`; `query` is its argument."""

    title: str
    command: Literal["search", "sparql"]
    query: str


QUESTIONS: tuple[Question, ...] = (
    Question("Which pages mention a lighthouse?", "search", "lighthouse"),
    Question(
        "Which events are there, by city?",
        "sparql",
        """PREFIX schema: <http://schema.org/>
SELECT ?city (COUNT(DISTINCT ?name) AS ?events) (MIN(STR(?start)) AS ?first)
WHERE {
  ?event a schema:Event ; schema:name ?title ; schema:startDate ?start ; schema:location ?place .
  ?place schema:address ?address .
  ?address schema:addressLocality ?locality .
  BIND (STR(?locality) AS ?city) BIND (STR(?title) AS ?name)
}
GROUP BY ?city
ORDER BY DESC(?events) ?city""",
    ),
    Question(
        "Who is described on two sites under different names?",
        "sparql",
        """PREFIX schema: <http://schema.org/>
PREFIX owl: <http://www.w3.org/2002/07/owl#>
SELECT DISTINCT ?name ?here ?there
WHERE {
  GRAPH ?page { ?here a schema:Person ; schema:name ?label ; schema:sameAs|owl:sameAs ?there . }
  GRAPH ?other { ?there a schema:Person . }
  FILTER (?page != ?other && STR(?here) < STR(?there))
  BIND (STR(?label) AS ?name)
}
ORDER BY ?name""",
    ),
)
