"""One file per syntax of structured data.

In: bytes (or a tree parsed once for all) and the page's URL. Out: statements in a `Sink`, links, `Finding`s.
Each syntax also has `extract(body, *, url, …) -> bytes`, so that it can be used and checked on its own.
"""
