"""Known-item questions in many languages: does the page come first that a person has in mind?

In: word lists and sentence patterns (`lexicons.toml`). Out: MRR, success at 1 and 5, CPU time of a query and bytes per
page, for Quadloom beside SQLite FTS5 and plain tantivy on the same texts. Run it with `quadloom bench search`.
"""
