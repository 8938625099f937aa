"""One document, inspected. In: a URL, a file or bytes. Out: an `Inspection`; nothing is stored.

May import: fetching, phases, process and below.
"""
