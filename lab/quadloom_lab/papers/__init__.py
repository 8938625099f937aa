"""The experiments of the four papers again: `quadloom reproduce`.

In: a `Scale`. Out: `Result`s, each a table or figure of a paper beside ours, written as HTML, Markdown, CSV and SVG.
One module per paper. May import all of the lab.
"""
