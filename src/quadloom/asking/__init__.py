"""Questions to a warehouse. In: words, SPARQL, an IRI, the URL of a page. Out: pages (`search`), results (`sparql`),
statements (`entity`), visits and versions (`history`, `versions`). `questions` has them all as methods.
Nothing here writes to a store. May import: workers, phases, stores, process and below.
"""
