"""The bytes of a fake web: HTML with its markup, feeds, RDF, robots.txt, sitemaps and the sites' own search.

In: a `PageRef` of `fakeweb.sites`. Out: a body with its media type and title. Imports `fakeweb.sites` only.
"""
