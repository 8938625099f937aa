"""The plan of a fake web: hosts, URLs, links, the things that pages are about and the traits of each, from one seed.

In: a `WebSpec`. Out: a `Layout` and functions of it; nothing is stored. Imports nothing else.
"""
