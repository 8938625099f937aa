"""What the sites of a fake web say: words, things and their facts, and the bytes of pages, feeds, RDF and site files.

In: a `PageRef` of `fakeweb.sites`. Out: a body with its media type and title. Imports `fakeweb.sites` only.
"""
