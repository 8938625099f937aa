"""Files that become pages. In: WARC files, RDF dumps and folders. Out: pages for the write path, statements for the
quad store.
"""
