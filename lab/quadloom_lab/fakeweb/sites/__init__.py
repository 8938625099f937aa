"""The plan of a fake web: its hosts, the URL of each page, the links and the traits of each, all from one seed.

In: a `WebSpec`. Out: a `Layout` and functions of it; no page is stored. Imports the words and things of `fakeweb.content`.
"""
