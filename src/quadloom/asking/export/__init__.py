"""Warehouses out and in. Out: `dump` writes the statements or archive records of the pages of a `selection`;
`description` describes the whole (VoID, DCAT). In: `imported_pages` turns WARC files and RDF dumps into pages.
May import: asking, phases, stores, process and below.
"""
