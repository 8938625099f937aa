"""Archives of pages. In: WARC files, and bodies as servers encode them. Out: records and decoded bodies."""
