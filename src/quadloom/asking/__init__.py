"""Questions to a warehouse. In: words, SPARQL, an IRI, the URL of a page. Out: pages (`search`), results (`sparql`),
statements (`entity`), visits and versions (`changes`), defects (`audit`), tables (`things`); `questions` has all of
them as methods. Nothing here writes to a store. May import: workers, phases, stores, process and below.
"""
