"""The search form of a page.

In: HTML. Out: a `SearchForm`, or None. Pure functions over lxml; imports `model` only.
"""
