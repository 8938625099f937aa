"""Archives in, tables out: the data of any number of files, without a warehouse.

In: paths and addresses of archives, RDF files and folders. Out: a lake (`quadloom.maintenance.lake`), N-Quads.
`run` divides the work, `part` writes the tables of one input, `page_child` transforms its pages in a process that a
page may end. May import: the rest of the lake, importing and what is below maintenance.
"""
