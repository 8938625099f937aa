"""The embedded text index, on tantivy.

In: documents of words. Out: hits with snippets and facets. Imports `stores.protocols` and `stores.search`; no other
engine.
"""
