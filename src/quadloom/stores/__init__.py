"""The seams (`protocols`) and their backends: SQLite, WARC, Oxigraph, tantivy, memory.

In: records of `quadloom.model`. Out: durable state. The pipeline only ever sees the Protocols;
`quadloom.warehouse` picks a backend by URL.
"""
