"""Warehouses out and in: `selection` names pages, `dump` writes their statements or archive records, `description` says
what the whole is (VoID, DCAT); `reading` turns WARC files and RDF dumps into pages for the same phases a crawl has."""
