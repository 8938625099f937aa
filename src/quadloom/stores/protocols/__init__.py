"""The seams: what the pipeline demands of a store. One file per seam, with the records that pass through it.

=============  ==================================  ==========================================================
file           Protocol                            backends
=============  ==================================  ==========================================================
state          `State`                             SQLite (embedded), PostgreSQL (many machines)
cluster        `Shards`, `Cluster`                 PostgreSQL
frontier       `Frontier`                          as `state`; `stores.frontier` holds the rules they share
catalog        `Catalog`                           as `state`
outbox         `Outbox`                            as `state`
bus            `Bus`                               one process, PostgreSQL
archive        `Archive`                           WARC files, a directory that machines share, S3
quads          `QuadStore`                         Oxigraph, any SPARQL 1.1 server
queries        records only                        `stores.quads.evaluation`, on Oxigraph or SPARQL servers
text           `TextIndex`                         tantivy, PostgreSQL
=============  ==================================  ==========================================================

In: records of `quadloom.model`, and bytes. Out: the same. Imports `quadloom.model` only.
One contract suite per Protocol is in tests/contract/ and runs on every backend. A backend may promise more, never
less. Time is always an argument (`now`, unix seconds), so every schedule can be tested by simulation.

Write order (docs/explanation/durability.md): archive records are fsynced first, then ONE transaction settles
frontier and catalog, then quads and text follow; their digests in the catalog say how far they got.
"""
