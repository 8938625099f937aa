"""What is wrong with the data of one page: vocabularies, values, profiles, consistency.

In: the statements of a transformed page, its source and the user's settings. Out: `Finding`s with item path, line and
column. Pure: no store, no network. Vocabularies (`vocabularies/*.tsv`) and profiles (`rules/*.toml`) are data; users
add their own in the same formats. May import `syntaxes` and below.
"""
