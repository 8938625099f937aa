"""The seams (`protocols`) and their engines: SQLite, PostgreSQL, WARC files, S3, Oxigraph, SPARQL servers, tantivy.

In: records of `quadloom.model`. Out: durable state. The pipeline only sees the Protocols; `backends` picks an engine by
URL. Imports model, settings and errors; engines do not import each other.
"""
