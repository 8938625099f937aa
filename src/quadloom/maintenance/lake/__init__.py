"""The lake: quads, pages, links and findings of a warehouse as Parquet files, for questions beyond one SPARQL server.

In: the stores of a warehouse, for reading. Out: files in a directory or a bucket, a manifest for each part (`sync`),
and answers in SQL (`query`). Needs the extra `quadloom[lake]`. May import:
maintenance.parallel, ranking, stores and below.
"""
