"""Documents that are files of another program: PDF, and the ZIP files of word processors.

In: their bytes. Out: text, headings, title and language, so that a search finds them; and author and date as
statements. They are read in the process that transforms pages, under its limits of time and memory.
"""
