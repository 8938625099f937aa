"""The archive as WARC files: on this machine, in a directory that machines share, or in an S3 bucket.

In: encoded records (`warc_record`). Out: references, and the pages that they name. Imports `stores.protocols` and the
model; no other engine.
"""
