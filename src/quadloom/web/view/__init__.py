"""Parts of pages: terms and their labels, cards of search hits, pictures, term usage, formats of numbers and times.

In: terms, rows and query results. Out: texts, links, SVG and small records for the templates. Imports nothing else of
`web`.
"""
