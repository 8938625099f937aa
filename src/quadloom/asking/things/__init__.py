"""Things of a type as a table. In: a type, conditions, an order. Out: rows with values, their labels and sources.

`paths` names columns, `profile` finds out which columns a type has, `selection` writes the SPARQL that selects things,
`merging` joins several descriptions of one thing, `table` puts it together. May import: asking.sparql, stores, model.
"""
