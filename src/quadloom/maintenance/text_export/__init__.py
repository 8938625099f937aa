"""The texts of pages for other programs: as Markdown, and in chunks for retrieval systems.

In: a warehouse and a selection of its pages. Out: JSON Lines, or a folder of files. Each page is read again from the
archive in a process of its own with limits.
"""
