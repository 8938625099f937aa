"""Questions to a warehouse: words in, pages out (`search`); SPARQL in, results out (`sparql`); an IRI in, all that is
said of it out (`entity`); a page's URL in, its visits and versions out (`history`). Nothing here writes to a store."""
